#!/bin/bash
# Renders the chart with its defaults into howdah.yaml (for those without Helm), and checks what it makes of every switch
# against the API's schemas: needs helm and kubeconform, and a network for the schemas. `render.sh check` writes nothing.
set -euo pipefail
cd "$(dirname "$0")"

for program in helm kubeconform; do
    command -v $program >/dev/null || { echo "render.sh: there is no $program" >&2; exit 3; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The token of the admin endpoint is drawn anew each time: without Helm it is made by hand.
render() { helm template howdah helm/howdah --set adminTokenSecret=howdah-admin "$@"; }

helm lint --strict helm/howdah
{
    echo '# Rendered from helm/howdah by render.sh. Before: kubectl create secret generic howdah-admin --from-literal=token=...'
    render
} >"$work/howdah.yaml"
render --set autoscaling.enabled=false --set disruptionBudget.enabled=false --set envFromSecret=shop --set env.APP_ENV=prod \
    --set 'writable={/srv/app/var,/srv/app/cache}' --set imagePullSecrets[0].name=x --set podMonitor.enabled=true >"$work/other.yaml"
helm template howdah helm/howdah >"$work/token.yaml"
# The PodMonitor's schema is the Prometheus operator's, not the API's.
kubeconform -strict -summary -skip PodMonitor -kubernetes-version 1.30.0 "$work"/*.yaml
if [ "${1-}" = check ]; then
    diff -u howdah.yaml "$work/howdah.yaml"
else
    mv "$work/howdah.yaml" howdah.yaml
fi
