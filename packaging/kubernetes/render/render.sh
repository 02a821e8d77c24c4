#!/bin/bash
# Renders the chart with its defaults into howdah.yaml (for those without Helm), and checks what it makes of every switch
# against the API's schemas. Needs Go, kubeconform and a network for the schemas. `render.sh check` writes nothing.
set -euo pipefail
cd "$(dirname "$0")"

for program in go kubeconform; do
    command -v $program >/dev/null || { echo "render.sh: there is no $program" >&2; exit 3; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/render" .

# The token of the admin endpoint is drawn anew each time: without Helm it is made by hand.
render() { "$work/render" ../helm/howdah howdah "$@"; }
mkdir "$work/out"
{
    echo '# Made from helm/howdah by render/render.sh. First: kubectl create secret generic howdah-admin --from-literal=token=...'
    render adminTokenSecret=howdah-admin
} >"$work/out/howdah.yaml"
render autoscaling.enabled=false disruptionBudget.enabled=false envFromSecret=shop 'env={APP_ENV: prod}' \
    'writable=[/srv/app/var, /srv/app/cache]' 'imagePullSecrets=[{name: x}]' 'podAnnotations={a: b}' \
    'nodeSelector={disk: ssd}' 'tolerations=[{operator: Exists}]' podMonitor.enabled=true >"$work/out/other.yaml"
render >"$work/out/token.yaml"
# The PodMonitor's schema is the Prometheus operator's, not the API's.
kubeconform -strict -summary -skip PodMonitor -kubernetes-version 1.30.0 "$work"/out/*.yaml
if [ "${1-}" = check ]; then
    diff -u ../howdah.yaml "$work/out/howdah.yaml"
else
    cp "$work/out/howdah.yaml" ../howdah.yaml
fi
