package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// Decodes into the API's own types: unknown fields and wrong types are errors. Allowed values are not checked.
func typed(kind string) any {
	switch kind {
	case "v1 ConfigMap":
		return &core.ConfigMap{}
	case "v1 Secret":
		return &core.Secret{}
	case "v1 Service":
		return &core.Service{}
	case "apps/v1 Deployment":
		return &apps.Deployment{}
	case "autoscaling/v2 HorizontalPodAutoscaler":
		return &autoscaling.HorizontalPodAutoscaler{}
	case "policy/v1 PodDisruptionBudget":
		return &policy.PodDisruptionBudget{}
	}
	return nil
}

// checkManifests reads manifests from standard input.
func checkManifests() {
	text, err := io.ReadAll(os.Stdin)
	check(err)
	valid, unknown := 0, 0
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ ApiVersion, Kind string }
		check(yaml.Unmarshal(document, &head))
		if head.Kind == "" {
			continue
		}
		into := typed(head.ApiVersion + " " + head.Kind)
		if into == nil {
			fmt.Printf("not checked: %s %s\n", head.ApiVersion, head.Kind)
			unknown++
			continue
		}
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			check(fmt.Errorf("%s: %w", head.Kind, err))
		}
		valid++
	}
	fmt.Printf("%d manifests fit the API's types, %d were not checked\n", valid, unknown)
}
