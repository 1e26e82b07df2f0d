package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// ScriptSpec says which program in Python to start.
type ScriptSpec struct {
	Python string // the interpreter
	Name   string // name of the program, for errors
	Text   string // the program
	Args   []string
	Env    []string // beside those of this process
}

// Script is a peer in Python at work. It answers each line, a request in JSON,
// with a line of JSON; one that has a text "error" tells of a failure. It is used
// by one goroutine at a time.
type Script struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// StartScript starts a script and reads its first line into hello. The end of
// ctx kills it.
func StartScript(ctx context.Context, spec ScriptSpec, hello any) (*Script, error) {
	cmd := exec.CommandContext(ctx, spec.Python, append([]string{"-c", spec.Text}, spec.Args...)...)
	cmd.Env, cmd.Stderr, cmd.SysProcAttr = append(os.Environ(), spec.Env...), os.Stderr, attributes()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Script{name: spec.Name, cmd: cmd, in: in, out: bufio.NewReader(out)}
	if err := s.read(hello); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Ask sends a request and reads the answer.
func (s *Script) Ask(request, answer any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := s.in.Write(append(text, '\n')); err != nil {
		return err
	}
	return s.read(answer)
}

func (s *Script) read(answer any) error {
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s ended: %w", s.name, err)
	}
	var failure struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(line, &failure); err != nil {
		return fmt.Errorf("%s: %q is no answer: %w", s.name, line, err)
	}
	if failure.Error != "" {
		return fmt.Errorf("%s: %s", s.name, failure.Error)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		return fmt.Errorf("%s: %q is not the answer: %w", s.name, line, err)
	}
	return nil
}

// Close lets the script end and waits for it.
func (s *Script) Close() error { return errors.Join(s.in.Close(), s.cmd.Wait()) }
