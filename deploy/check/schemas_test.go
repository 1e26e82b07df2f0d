package check

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/validator"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// The schemas of Kubernetes that a wheel of PyPI's kubernetes-validate holds.
const schemasOfWheel = "kubernetes_validate/kubernetes-json-schema/v1.37.0-local-strict/"

// reference is a place of a schema that the wheel's file of definitions holds.
var reference = regexp.MustCompile(`"(?:/api/_definitions\.json)?#/\$defs/([^"]+)"`)

// schemas writes the schemas that the manifests need into a folder, each whole: kubeconform
// follows no reference of the wheel's.
func schemas(t *testing.T, wheel, definitions string) (folder string) {
	t.Helper()
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	read := func(name string) []byte {
		f, err := archive.Open(schemasOfWheel + name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		text, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var shared struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(read("_definitions.json"), &shared); err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	for _, name := range []string{"job-batch-v1", "statefulset-apps-v1", "service-v1", "configmap-v1",
		"poddisruptionbudget-policy-v1", "networkpolicy-networking-v1"} {
		text := whole(t, read(name+".json"), shared.Defs)
		if err := os.WriteFile(filepath.Join(folder, name+".json"), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text := ofDefinition(t, filepath.Join(definitions, "keda.sh_scaledobjects.yaml"))
	if err := os.WriteFile(filepath.Join(folder, "scaledobject-keda-v1alpha1.json"), text, 0o666); err != nil {
		t.Fatal(err)
	}
	return folder
}

// whole returns a schema with all that it refers to within itself.
func whole(t *testing.T, text []byte, shared map[string]json.RawMessage) []byte {
	t.Helper()
	var schema map[string]json.RawMessage
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema, "$id") // references begin here
	needed := map[string]json.RawMessage{}
	for next := [][]byte{text}; len(next) > 0; next = next[1:] {
		for _, found := range reference.FindAllSubmatch(next[0], -1) {
			name := string(found[1])
			if _, done := needed[name]; done {
				continue
			}
			if shared[name] == nil {
				t.Fatalf("no schema defines %s", name)
			}
			needed[name] = shared[name]
			next = append(next, shared[name])
		}
	}
	defs, err := json.Marshal(needed)
	if err != nil {
		t.Fatal(err)
	}
	schema["$defs"] = defs
	if text, err = json.Marshal(schema); err != nil {
		t.Fatal(err)
	}
	return reference.ReplaceAll(text, []byte(`"#/$$defs/$1"`))
}

// ofDefinition returns the schema of a custom resource, strict as those of Kubernetes are.
func ofDefinition(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &definition); err != nil || len(definition.Spec.Versions) != 1 {
		t.Fatalf("%s: %v, %d versions", file, err, len(definition.Spec.Versions))
	}
	schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	strict(schema)
	if text, err = json.Marshal(schema); err != nil {
		t.Fatal(err)
	}
	return text
}

// strict forbids what objects with properties do not list.
func strict(schema map[string]any) {
	for _, value := range schema {
		switch v := value.(type) {
		case map[string]any:
			strict(v)
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					strict(m)
				}
			}
		}
	}
	_, lists := schema["properties"].(map[string]any)
	_, others := schema["additionalProperties"]
	if lists && schema["type"] == "object" && !others && schema["x-kubernetes-preserve-unknown-fields"] != true {
		schema["additionalProperties"] = false
	}
}

// manifests returns all objects of deploy as one text.
func manifests(t *testing.T) string {
	t.Helper()
	texts := []string{manifest(t)}
	for _, folder := range []string{runFolder, "../run/keda"} {
		made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
		if err != nil {
			t.Fatal(err)
		}
		text, err := made.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return strings.Join(texts, "\n---\n")
}

// faults returns what kubeconform finds in manifests, and the number of objects it has checked.
func faults(t *testing.T, folder, text string) (checked int, err error) {
	t.Helper()
	v, err := validator.New([]string{path.Join(filepath.ToSlash(folder), "{{.ResourceKind}}{{.KindSuffix}}.json")},
		validator.Opts{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	var all []error
	for _, result := range v.Validate("manifests", io.NopCloser(bytes.NewBufferString(text))) {
		switch result.Status {
		case validator.Valid:
			checked++
		case validator.Empty:
		default:
			all = append(all, fmt.Errorf("%.40s: %w %v", result.Resource.Bytes, result.Err, result.ValidationErrors))
		}
	}
	return checked, errors.Join(all...)
}

// kubeconform takes every manifest by the schemas of Kubernetes and of KEDA, and refuses each
// fault that is planted.
func TestManifestsConformToSchemas(t *testing.T) {
	wheel, definitions := os.Getenv("ENTROPIPE_KUBERNETES_WHEEL"), os.Getenv("ENTROPIPE_KEDA_DEFINITIONS")
	if wheel == "" || definitions == "" {
		t.Skip("ENTROPIPE_KUBERNETES_WHEEL names no wheel of kubernetes-validate, or ENTROPIPE_KEDA_DEFINITIONS no " +
			"folder")
	}
	folder, text := schemas(t, wheel, definitions), manifests(t)
	if checked, err := faults(t, folder, text); err != nil || checked < 12 {
		t.Fatalf("%d objects: %v", checked, err)
	}
	for _, c := range []struct{ was, is string }{
		{"backoffLimitPerIndex", "backofLimitPerIndex"},
		{"parallelism: 4", "parallelism: four"},
		{"serviceName:", "serviceNames:"},
		{"podManagementPolicy:", "podManagementPolicies:"},
		{"kind: StatefulSet", "kind: StatefulSets"},
		{"policyTypes:", "policyType:"},
		{"maxUnavailable:", "maxUnavailables:"},
		{"maxReplicaCount:", "maxReplicas:"},
		{"scaleTargetRef:", "scaleTarget:"},
		{"triggers:", "trigger:"},
	} {
		wrong := strings.Replace(text, c.was, c.is, 1)
		if wrong == text {
			t.Errorf("no manifest has %q", c.was)
		} else if _, err := faults(t, folder, wrong); err == nil {
			t.Errorf("%q in place of %q is taken", c.is, c.was)
		}
	}
}
