package replay

import (
	"log/slog"

	"entropipe/schemas/codec"
)

// posing gives clouds the poses that a recording tells, says once why one is unknown, and in
// the end how many are.
type posing struct {
	transforms
	log     *slog.Logger
	quiet   bool
	any     bool // the recording has transforms
	warned  bool
	odd     bool   // the log has the warning about a transform that was left out
	file    string // the last cloud's
	clouds  int64
	without int64 // clouds whose pose the transforms do not tell
}

// reset begins another recording.
func (p *posing) reset() {
	p.tell()
	p.transforms, p.any, p.warned, p.odd = transforms{}, false, false, false
}

// tell says how many clouds of the recording are without pose, and begins to count again.
func (p *posing) tell() {
	if p.without > 0 && !p.quiet && p.log != nil {
		p.log.Warn("clouds without a pose", "clouds", p.without, "of", p.clouds, "file", p.file)
	}
	p.clouds, p.without = 0, 0
}

// expect takes note of a topic of the recording.
func (p *posing) expect(t topicInfo) {
	if isTransforms(t.schema, t.encoding) {
		p.any = true
		p.moving = p.moving || !isStaticTopic(t.name)
	}
}

// take adds the transforms of a message, or notes that it could not be read.
func (p *posing) take(file string, topic topicInfo, message []byte, err error) {
	if err == nil {
		err = p.add(isStaticTopic(topic.name), transformsOf(topic.schema, topic.encoding), message)
	}
	if err != nil && !p.odd && !p.quiet && p.log != nil {
		p.odd = true
		p.log.Warn("transforms that cannot be used are left out", "file", file, "topic", topic.name, "first",
			err.Error())
	}
}

// of returns the pose of a sensor's frame; nil: unknown.
func (p *posing) of(file, frame string, ns int64) *codec.Pose {
	if !p.any {
		return nil
	}
	p.file = file
	p.clouds++
	pose, err := p.pose(frame, ns)
	if err == nil {
		return pose
	}
	p.without++
	if !p.warned && !p.quiet && p.log != nil {
		p.warned = true
		p.log.Warn("clouds without pose: the transforms of the recording are ignored where they are not simple", "file",
			file, "first", err.Error())
	}
	return nil
}

// postponed is what happens to the poses of a recording between two items. Where lanes take
// items ahead, it waits for its turn: a pose is made of the transforms before its cloud.
type postponed struct {
	ahead bool
	steps []func()
}

// begin drops what came before the end of a recording.
func (p *postponed) begin() { p.steps = p.steps[:0] }

func (p *postponed) do(step func()) {
	if p.ahead {
		p.steps = append(p.steps, step)
		return
	}
	step()
}

// catchUp does what was postponed.
func (p *postponed) catchUp() {
	for _, step := range p.steps {
		step()
	}
	p.steps = p.steps[:0]
}
