// Renders the chart without Helm: the same template language and functions (text/template and sprig, which Helm uses),
// with those of Helm's own features that the chart needs. `go run . CHART RELEASE [KEY=VALUE…]`; values are YAML. `go
// run . check` checks manifests against the types of the API.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func read(path string) object {
	text, err := os.ReadFile(path)
	check(err)
	values := object{}
	check(yaml.UnmarshalStrict(text, &values))
	return values
}

func set(values object, path, text string) {
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		inner, ok := values[key].(object)
		if !ok {
			check(fmt.Errorf("%s: %s is no table", path, key))
		}
		values = inner
	}
	var value any
	check(yaml.Unmarshal([]byte(text), &value))
	values[keys[len(keys)-1]] = value
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "check" {
		checkManifests()
		return
	}
	if len(os.Args) < 3 {
		check(fmt.Errorf("render CHART RELEASE [KEY=VALUE…]"))
	}
	chart := read(filepath.Join(os.Args[1], "Chart.yaml"))
	values := read(filepath.Join(os.Args[1], "values.yaml"))
	for _, argument := range os.Args[3:] {
		path, text, _ := strings.Cut(argument, "=")
		set(values, path, text)
	}
	files, err := filepath.Glob(filepath.Join(os.Args[1], "templates", "*"))
	check(err)
	sort.Strings(files)
	root := template.New("").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	functions["include"] = func(name string, data any) (string, error) {
		var out strings.Builder
		err := root.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	functions["toYaml"] = func(value any) string {
		text, err := yaml.Marshal(value)
		check(err)
		return strings.TrimSuffix(string(text), "\n")
	}
 // There is no cluster to query.
	functions["lookup"] = func(...string) object { return object{} }
	root.Funcs(functions)
 // Helm capitalizes the chart's keys.
	data := object{
		"Values":   values,
		"Chart":    object{"Name": chart["name"], "AppVersion": chart["appVersion"], "Version": chart["version"]},
		"Release":  object{"Name": os.Args[2], "Namespace": "default", "Service": "Helm"},
		"Template": object{"BasePath": "templates"},
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(err)
		_, err = root.New("templates/" + filepath.Base(file)).Parse(string(text))
		check(err)
	}
	for _, file := range files {
		name := "templates/" + filepath.Base(file)
		if strings.HasPrefix(filepath.Base(file), "_") {
			continue
		}
		var out strings.Builder
		check(root.ExecuteTemplate(&out, name, data))
		if text := strings.TrimSpace(out.String()); text != "" {
			fmt.Printf("---\n# Source: howdah/%s\n%s\n", name, text)
		}
	}
}
