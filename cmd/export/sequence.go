package export

import (
	"bufio"
	"errors"

	"entropipe/cmd/command"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/picture"
	"entropipe/sinks/read"
)

// exportMCAP writes one frame, or with --all every frame, for Foxglove and Rerun. With
// --all table frames is read twice: the topics of the file depend on the names in it.
func (c *Command) exportMCAP(e *command.Env, store sinks.Reader) error {
	var levels picture.Levels
	if c.All {
		if err := read.ReadFrames(e.Ctx, store, c.query(), func(r *schemas.Result, _ []string) error {
			levels.See(&r.FrameKey)
			return nil
		}); err != nil {
			return err
		}
	}
	return c.send(e.Stdout, func(w *bufio.Writer) error {
		m := picture.NewMCAP(w, levels)
		err := c.eachFrame(e, store, m.Add)
		repeats, closing := m.Close()
		if err = errors.Join(err, closing); err == nil && repeats > 0 {
			e.Log.Warn("frames of one topic have equal times: a viewer shows the last of them", "messages", repeats)
		}
		return err
	})
}
