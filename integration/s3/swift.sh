#!/bin/bash
# swift.sh BIN FOLDER PORT: OpenStack Swift on 127.0.0.1, one node and one copy, its S3 at PORT (its parts at PORT+1
# to +3). Runs until it is ended; its data is in FOLDER. BIN is the folder that has Swift's programs (PyPI: swift).
set -e
bin=$1 folder=$2 port=$3
mkdir -p "$folder/etc" "$folder/node/disk" "$folder/run"
cd "$folder/etc"
export SWIFT_CONF="$folder/etc/swift.conf"

cat > swift.conf <<END
[swift-hash]
swift_hash_path_suffix = test
swift_hash_path_prefix = test
[storage-policy:0]
name = default
default = yes
END

declare -A part=([object]=$((port + 1)) [container]=$((port + 2)) [account]=$((port + 3)))
for name in "${!part[@]}"; do
  "$bin/swift-ring-builder" $name.builder create 4 1 0 > /dev/null
  "$bin/swift-ring-builder" $name.builder add "r1z1-127.0.0.1:${part[$name]}/disk" 1 > /dev/null
  "$bin/swift-ring-builder" $name.builder rebalance > /dev/null || true # it warns that there is one copy
  cat > $name-server.conf <<END
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${part[$name]}
workers = 0
user = $(id -un)
swift_dir = $folder/etc
devices = $folder/node
mount_check = false
disable_fallocate = true
log_address = $folder/none
# A busy machine is slow to update a listing. What is given up on here would be listed by a daemon, hours later.
container_update_timeout = 60
conn_timeout = 10
node_timeout = 60
[pipeline:main]
pipeline = $name-server
[app:$name-server]
use = egg:swift#$name
END
done

# Without memcached, which would only make it faster.
cat > proxy-server.conf <<END
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $port
workers = 0
user = $(id -un)
swift_dir = $folder/etc
log_address = $folder/none
[pipeline:main]
pipeline = catch_errors gatekeeper s3api tempauth copy bulk slo dlo versioned_writes symlink proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
conn_timeout = 10
node_timeout = 60
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
check_bucket_owner = false
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin .reseller_admin
[filter:copy]
use = egg:swift#copy
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_object_versioning = true
[filter:symlink]
use = egg:swift#symlink
END

for name in object container account proxy; do
  "$bin/swift-$name-server" "$folder/etc/$name-server.conf" >> "$folder/$name.log" 2>&1 &
  echo $! >> "$folder/run/pids"
done
trap 'xargs -r kill < "$folder/run/pids"' TERM INT
wait
