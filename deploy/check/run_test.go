package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	disruption "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const runFolder = "../run/base"

// workers are the objects that kustomize makes of deploy/run.
type workers struct {
	set     apps.StatefulSet
	service core.Service
	budget  disruption.PodDisruptionBudget
	network networking.NetworkPolicy
	config  core.ConfigMap
	scaler  string // the ScaledObject as text
}

// built runs kustomize on a folder and decodes every object strictly.
func built(t *testing.T, folder string) *workers {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	w := &workers{}
	kinds := map[string]any{"StatefulSet": &w.set, "Service": &w.service, "PodDisruptionBudget": &w.budget,
		"NetworkPolicy": &w.network, "ConfigMap": &w.config}
	for _, r := range made.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetKind() == "ScaledObject" {
			w.scaler = string(text)
			continue
		}
		into := kinds[r.GetKind()]
		if into == nil {
			t.Fatalf("%s: a second or unknown %s", folder, r.GetKind())
		}
		delete(kinds, r.GetKind())
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%s: %s: %v", folder, r.GetKind(), err)
		}
	}
	for kind := range kinds {
		t.Errorf("%s has no %s", folder, kind)
	}
	return w
}

// No field is unknown, in kustomizations either; a field that is spelled otherwise is refused.
func TestWorkersDecodeStrictly(t *testing.T) {
	built(t, runFolder)
	for _, folder := range []string{runFolder, runFolder + "/../keda"} {
		text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, &types.Kustomization{}); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
	}
	text, err := os.ReadFile(runFolder + "/statefulset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ was, is, want string }{
		{"podManagementPolicy", "podManagmentPolicy", "unknown field"},
		{"fieldPath: metadata.name", "fieldPth: metadata.name", "unknown field"},
		{"replicas: 2", "replicas: two", "cannot unmarshal string"},
		{"serviceName: entropipe", "replicas: 3", `"replicas" already set`},
	} {
		err := yaml.UnmarshalStrict([]byte(strings.Replace(string(text), c.was, c.is, 1)), &apps.StatefulSet{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %s", c.is, c.was, err, c.want)
		}
	}
}

// A pod's instance is its name, so a rolling restart moves no partition.
func TestWorkersAreStaticMembers(t *testing.T) {
	w := built(t, runFolder)
	c := w.set.Spec.Template.Spec.Containers[0]
	i := slices.IndexFunc(c.Env, func(e core.EnvVar) bool { return e.Name == "ENTROPIPE_GROUP_INSTANCE" })
	if i < 0 || c.Env[i].ValueFrom == nil || c.Env[i].ValueFrom.FieldRef == nil ||
		c.Env[i].ValueFrom.FieldRef.FieldPath != "metadata.name" {
		t.Error("ENTROPIPE_GROUP_INSTANCE is not the name of the pod")
	}
	if w.set.Spec.UpdateStrategy.Type != apps.RollingUpdateStatefulSetStrategyType {
		t.Error("pods are not restarted one after the other")
	}
}

// The selectors of all objects choose the pods, and names and ports meet.
func TestWorkersFitTogether(t *testing.T) {
	w := built(t, runFolder)
	pod := labels.Set(w.set.Spec.Template.Labels)
	if w.budget.Spec.Selector == nil {
		t.Fatal("the PodDisruptionBudget chooses no pods")
	}
	for name, selector := range map[string]map[string]string{
		"StatefulSet": w.set.Spec.Selector.MatchLabels, "Service": w.service.Spec.Selector,
		"PodDisruptionBudget": w.budget.Spec.Selector.MatchLabels,
		"NetworkPolicy":       w.network.Spec.PodSelector.MatchLabels,
		"topologySpread":      w.set.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
	} {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(pod) {
			t.Errorf("%s: its selector %v does not choose pods with %v", name, selector, pod)
		}
	}
	if w.service.Name != w.set.Spec.ServiceName {
		t.Errorf("service %s, the StatefulSet wants %s", w.service.Name, w.set.Spec.ServiceName)
	}
	spec := w.set.Spec.Template.Spec
	if got := spec.Volumes[0].ConfigMap.Name; got != w.config.Name {
		t.Errorf("the pods mount ConfigMap %s, there is %s", got, w.config.Name)
	}
	c := spec.Containers[0]
	if !strings.HasSuffix(c.Image, ":0.1.0") {
		t.Errorf("image %s has no fixed tag", c.Image)
	}
	port := c.Ports[0].Name
	for what, got := range map[string]string{"service": w.service.Spec.Ports[0].TargetPort.StrVal,
		"network": w.network.Spec.Ingress[0].Ports[0].Port.StrVal, "startup": c.StartupProbe.HTTPGet.Port.StrVal,
		"liveness": c.LivenessProbe.HTTPGet.Port.StrVal, "readiness": c.ReadinessProbe.HTTPGet.Port.StrVal} {
		if got != port {
			t.Errorf("%s: port %q, the container's is %q", what, got, port)
		}
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("no volume is called %s", m.Name)
		}
	}
}

// A scaler owns the number of pods, so the overlay names none.
func TestScalerOwnsTheNumberOfPods(t *testing.T) {
	w := built(t, runFolder+"/../keda")
	if w.set.Spec.Replicas != nil {
		t.Errorf("an apply sets %d replicas", *w.set.Spec.Replicas)
	}
	var config struct{ Group, RollAge string }
	if err := yaml.Unmarshal([]byte(w.config.Data["entropipe.yaml"]), &config); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: " + w.set.Name, "consumerGroup: " + config.Group,
		"offsetResetPolicy: earliest", `excludePersistentLag: "false"`} {
		if !strings.Contains(w.scaler, want) {
			t.Errorf("the ScaledObject has no %q:\n%s", want, w.scaler)
		}
	}
}

func TestWorkersAreRestricted(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	pod := built(t, runFolder).set.Spec.Template
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, r := range checks.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
		if !r.Allowed {
			t.Errorf("%s: %s", r.ForbiddenReason, r.ForbiddenDetail)
		}
	}
	c := pod.Spec.Containers[0]
	if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
		t.Error("the root file system is not read-only")
	}
	if r := c.Resources; r.Limits.Memory().IsZero() || r.Requests.Memory().IsZero() || r.Requests.Cpu().IsZero() {
		t.Error("the container names no resources")
	}
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		t.Error("the pods have a token of the API")
	}
}
