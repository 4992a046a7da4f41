raise RuntimeError('drafts do not go')
