package rig

import (
	"os/exec"
	"strings"
	"testing"
)

// A script is asked line by line. An answer that is none, one that tells of an
// error, and the script's end are errors, which name it.
func TestScript(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("the peer is a program in Python: %v", err)
	}
	const echo = `
import os, sys
print('{"version": "' + sys.argv[1] + os.environ["NAME"] + '"}', flush=True)
for line in sys.stdin:
    if "leave" in line:
        break
    print({"1": '{"ns": [3, 4]}', "2": "no json", "3": '{"error": "no such model"}', "4": '{"ns": "x"}'}[line.strip()], flush=True)
`
	var hello struct{ Version string }
	s, err := StartScript(t.Context(), ScriptSpec{Python: python, Name: "echo.py", Text: echo, Args: []string{"1."},
		Env: []string{"NAME=2"}}, &hello)
	if err != nil || hello.Version != "1.2" {
		t.Fatalf("hello is %+v, %v", hello, err)
	}
	var answer struct{ Ns []int64 }
	if err := s.Ask(1, &answer); err != nil || len(answer.Ns) != 2 || answer.Ns[1] != 4 {
		t.Errorf("answer is %+v, %v", answer, err)
	}
	for request, want := range map[any]string{2: `"no json\n" is no answer`, 3: "no such model",
		4: "is not the answer"} {
		if err := s.Ask(request, &answer); err == nil || !strings.Contains(err.Error(), "echo.py: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("request %v: %v, want %s", request, err, want)
		}
	}
	if err := s.Ask("leave", &answer); err == nil || !strings.Contains(err.Error(), "echo.py ended") {
		t.Errorf("after its end: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := StartScript(t.Context(), ScriptSpec{Python: python, Name: "mute.py", Text: "pass"},
		&hello); err == nil || !strings.Contains(err.Error(), "mute.py ended") {
		t.Errorf("a script that says nothing: %v", err)
	}
	if _, err := StartScript(t.Context(), ScriptSpec{Python: python + "-of-nobody", Name: "x.py"}, &hello); err == nil {
		t.Error("no interpreter, and no error")
	}
}
