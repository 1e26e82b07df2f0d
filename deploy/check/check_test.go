// Package check decodes the manifests of deploy into the types of Kubernetes. It is a module
// of its own, so that they are no dependency of the program.
package check

import (
	"os"
	"slices"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

const jobFile = "../backfill/job.yaml"

func manifest(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(jobFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func decoded(t *testing.T) *batch.Job {
	t.Helper()
	var job batch.Job
	if err := yaml.UnmarshalStrict([]byte(manifest(t)), &job); err != nil {
		t.Fatalf("%s: %v", jobFile, err)
	}
	return &job
}

// No field of the manifest is unknown, twice there or of another type.
func TestJobDecodesStrictly(t *testing.T) {
	text := manifest(t)
	if err := yaml.UnmarshalStrict([]byte(text), &batch.Job{}); err != nil {
		t.Fatalf("%s: %v", jobFile, err)
	}
	for _, c := range []struct{ was, is, want string }{
		{"backoffLimitPerIndex", "backofLimitPerIndex", `unknown field "backofLimitPerIndex"`},
		{"onExitCodes", "onExitCode", `unknown field "onExitCode"`},
		{"parallelism: 4", "parallelism: four", "cannot unmarshal string"},
		{"parallelism: 4", "completions: 4", `"completions" already set`},
		{"values: [2, 78]", "values: 2", "cannot unmarshal number"},
	} {
		wrong := strings.Replace(text, c.was, c.is, 1)
		err := yaml.UnmarshalStrict([]byte(wrong), &batch.Job{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %s", c.is, c.was, err, c.want)
		}
	}
}

// What the API server demands of a Job beyond the types, where this manifest could break it.
func TestJobIsOneThatTheServerTakes(t *testing.T) {
	s := decoded(t).Spec
	if s.CompletionMode == nil || *s.CompletionMode != batch.IndexedCompletion || s.Completions == nil {
		t.Error("completions by index are wanted")
	} else if s.MaxFailedIndexes == nil || *s.MaxFailedIndexes > *s.Completions || s.BackoffLimitPerIndex == nil {
		t.Error("maxFailedIndexes is at most completions, beside backoffLimitPerIndex")
	}
	if s.PodReplacementPolicy == nil || *s.PodReplacementPolicy != batch.Failed {
		t.Error("beside a podFailurePolicy, podReplacementPolicy is Failed")
	}
	if s.Template.Spec.RestartPolicy != core.RestartPolicyNever {
		t.Error("beside a podFailurePolicy, restartPolicy is Never")
	}
	if s.PodFailurePolicy == nil || len(s.PodFailurePolicy.Rules) == 0 || len(s.PodFailurePolicy.Rules) > 20 {
		t.Fatal("a podFailurePolicy of 1 to 20 rules is wanted")
	}
	names := map[string]bool{}
	for _, c := range s.Template.Spec.Containers {
		names[c.Name] = true
	}
	for i, r := range s.PodFailurePolicy.Rules {
		if (r.OnExitCodes == nil) == (len(r.OnPodConditions) == 0) {
			t.Errorf("rule %d: exit codes or conditions, not both", i)
		}
		if e := r.OnExitCodes; e != nil {
			if e.ContainerName == nil || !names[*e.ContainerName] {
				t.Errorf("rule %d: no container has this name", i)
			}
			if !slices.IsSorted(e.Values) || slices.Contains(e.Values, 0) || len(e.Values) == 0 ||
				len(slices.Compact(slices.Clone(e.Values))) != len(e.Values) {
				t.Errorf("rule %d: values are ascending, distinct and not 0: %v", i, e.Values)
			}
		}
		for _, c := range r.OnPodConditions {
			if c.Type == "" || c.Status == "" {
				t.Errorf("rule %d: a condition has type and status", i)
			}
		}
	}
	mounted := map[string]bool{}
	for _, v := range s.Template.Spec.Volumes {
		mounted[v.Name] = true
	}
	for _, c := range s.Template.Spec.Containers {
		for _, m := range c.VolumeMounts {
			if !mounted[m.Name] {
				t.Errorf("no volume is called %s", m.Name)
			}
		}
	}
}

// The pods pass the standard "restricted", by the code of the admission controller.
func TestPodsAreRestricted(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	pod := decoded(t).Spec.Template
	for _, r := range checks.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
		if !r.Allowed {
			t.Errorf("%s: %s", r.ForbiddenReason, r.ForbiddenDetail)
		}
	}
	root := false
	pod.Spec.SecurityContext.RunAsNonRoot = &root
	if policy.AggregateCheckResults(checks.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)).Allowed {
		t.Error("a pod that may run as root is taken for restricted")
	}
	c := pod.Spec.Containers[0]
	if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
		t.Error("the root file system is not read-only")
	}
	r := c.Resources
	if r.Limits.Memory().IsZero() || r.Requests.Memory().IsZero() || r.Requests.Cpu().IsZero() {
		t.Error("the container names no resources")
	}
	for _, m := range c.VolumeMounts {
		if m.Name == "archive" && !m.ReadOnly {
			t.Error("the archive can be written")
		}
	}
}
