#!/bin/sh
# Install the servers that prxbus is measured beside, from Debian's packages. Without root it only says what is missing;
# a benchmark leaves a missing peer out and says so.
set -eu
missing=""
for server in nats-server redis-server mosquitto; do
    PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v "$server" >/dev/null 2>&1 || missing="$missing $server"
done
if [ -z "$missing" ]; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed, left out of the comparison:$missing" >&2
    echo "to measure beside them, run as root: apt-get install$missing" >&2
    exit 0
fi
# The packages would start their servers at once; the benchmarks start their own, on free ports, and only while they run.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update || true
# shellcheck disable=SC2086 -- one word per package
apt-get install -y --no-install-recommends $missing || echo "could not be installed, left out:$missing" >&2
