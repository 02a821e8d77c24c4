#!/bin/bash
# Renders the chart with its defaults into howdah.yaml (for use without Helm), and checks the output for every switch
# against the types of the Kubernetes API. Needs Go and its module proxy. `render.sh check` writes nothing and prints
# differences.
set -euo pipefail
cd "$(dirname "$0")"

command -v go >/dev/null || { echo "render.sh: there is no go" >&2; exit 3; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/render" .

render() { "$work/render" ../helm/howdah howdah "$@"; }
{
    # Each rendering generates a new token for the admin endpoint: without Helm the secret is created by hand.
    echo '# From helm/howdah, by render/render.sh. First: kubectl create secret generic howdah-admin --from-literal=token=...'
    render adminTokenSecret=howdah-admin
} >"$work/howdah.yaml"
"$work/render" check <"$work/howdah.yaml"
render | "$work/render" check
render autoscaling.enabled=false disruptionBudget.enabled=false envFromSecret=shop 'env={APP_ENV: prod}' \
    'writable=[/srv/app/var, /srv/app/cache]' 'imagePullSecrets=[{name: x}]' 'podAnnotations={a: b}' \
    'nodeSelector={disk: ssd}' 'tolerations=[{operator: Exists}]' podMonitor.enabled=true | "$work/render" check
if [ "${1-}" = check ]; then
    diff -u ../howdah.yaml "$work/howdah.yaml"
else
    cp "$work/howdah.yaml" ../howdah.yaml
fi
