package command

import (
	"context"
	"errors"
	"testing"
)

// A signal ends what asks no context, such as the parsing of a large file.
func TestUntilStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	e, begun, free := &Env{Ctx: ctx}, make(chan bool), make(chan bool)
	defer close(free)
	go func() { <-begun; cancel() }()
	err := UntilStopped(e, func() error { close(begun); <-free; return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if err := UntilStopped(&Env{Ctx: context.Background()},
		func() error { return errors.ErrUnsupported }); err != errors.ErrUnsupported {
		t.Errorf("what f says becomes %v", err)
	}
}
