"""Starts the real binaries and real model servers for the end-to-end tests, and stops them again.

`waiting`   conditions instead of sleeps
`ports`     free ports
`process`   one process: its log, its pid, its end
`router`    switchboard-router: admin pages, metrics
`control`   switchboard-control: keys, registry, the command line, the HTTP API
`upstream`  switchboard-loadtest upstream, the mock model server
`mlserver`  MLServer with scikit-learn models
`stack`     keys + control + routers + upstreams under one temporary folder
`push`      the push protocol as a hostile control plane would speak it
`traffic`   many users over many connections
`kafka`     a real Apache Kafka
`shadow`    Shadow records, their results, and the shadow worker
"""
