package replay

import (
	"fmt"
	"strings"

	"entropipe/schemas/codec"
	"entropipe/schemas/codec/tfmessage"
)

// transforms follows the coordinate frames of a robot, and tells where a sensor stood.
//
// A pose is a chain of transforms from the sensor's frame to a root, which is a frame map or
// odom, or one without parent. A link of the chain is static, or lies between two transforms
// at most transformGap apart (the translation linearly, the rotation along the shortest arc), or
// is the nearest that is at most transformAge older or newer than the cloud. All poses of a
// recording lead to one root, that of the first: otherwise they would jump where a link to a
// higher root comes too late. Chains without a moving link are no poses where the recording
// has moving ones.
//
// Only what came before the cloud in the recording counts.
type transforms struct {
	links  map[string]*link // by the child's frame
	root   string           // frame to which the poses lead; empty: none so far
	moving bool             // the recording has a topic of moving transforms
}

// link is the way from a frame to its parent: static, or the transforms of the last time.
type link struct {
	parent string
	fixed  *codec.Pose
	recent []timedPose // in the order of their times
}

type timedPose struct {
	ns int64
	motion
}

const (
	// transformAge is how much older or newer than a cloud a single transform may be, nanoseconds.
	transformAge = 50e6
	// transformGap is how far apart two transforms may be of which one between is computed.
	transformGap = 1e9
	// maxFrames, maxRecent and maxChain bound memory and time, and end cycles.
	maxFrames = 4096
	maxRecent = 1024
	maxChain  = 64
)

// isStaticTopic reports whether the transforms of a topic hold for ever.
func isStaticTopic(topic string) bool { return strings.HasSuffix(topic, "tf_static") }

// add takes the transforms of a message; static ones hold for ever. An error says what is
// wrong with the first that was left out.
func (t *transforms) add(static bool, decode transformDecoder, message []byte) error {
	list, fault := decode(nil, message)
	for i := range list {
		if err := t.addOne(static, &list[i]); err != nil && fault == nil {
			fault = err
		}
	}
	return fault
}

func (t *transforms) addOne(static bool, m *tfmessage.Transform) error {
	step, ok := motionOf(m)
	if !ok {
		return fmt.Errorf("the transform from %s to %s is no motion", frameName(m.Child), frameName(m.Parent))
	}
	if t.links == nil {
		t.links = map[string]*link{}
	}
	child, parent := frameName(m.Child), frameName(m.Parent)
	l := t.links[child]
	if l == nil || l.parent != parent {
		if l == nil && len(t.links) == maxFrames {
			return fmt.Errorf("there are more than %d coordinate frames", maxFrames)
		}
		l = &link{parent: parent}
		t.links[child] = l
	}
	if static {
		pose := step.pose()
		l.fixed, l.recent = &pose, nil
		return nil
	}
	l.fixed = nil
	at := len(l.recent)
	for at > 0 && l.recent[at-1].ns > m.TimeNs {
		at--
	}
	if at > 0 && l.recent[at-1].ns == m.TimeNs {
		l.recent[at-1].motion = step
		return nil
	}
	if len(l.recent) == maxRecent {
		if at == 0 {
			return nil
		}
		at--
		copy(l.recent, l.recent[1:])
		l.recent = l.recent[:maxRecent-1]
	}
	l.recent = append(l.recent, timedPose{})
	copy(l.recent[at+1:], l.recent[at:])
	l.recent[at] = timedPose{m.TimeNs, step}
	return nil
}

// frameName is a name as tf2 has it: without the slash that the first tf put before it.
func frameName(name string) string { return strings.TrimPrefix(name, "/") }

// compose returns the motion that applies b, then a.
func compose(a, b *codec.Pose) (p codec.Pose) {
	for r := range 3 {
		for c := range 4 {
			v := a[4*r]*b[c] + a[4*r+1]*b[4+c] + a[4*r+2]*b[8+c]
			if c == 3 {
				v += a[4*r+3]
			}
			p[4*r+c] = v
		}
	}
	return p
}

// isRoot reports whether a frame is one in which robots say where they are.
func isRoot(frame string) bool {
	name := frame[strings.LastIndexByte(frame, '/')+1:]
	return name == "map" || name == "odom"
}

// pose returns where frame stood at a time. The error says why that is unknown.
func (t *transforms) pose(frame string, ns int64) (*codec.Pose, error) {
	at := frameName(frame)
	if t.links[at] == nil && !isRoot(at) {
		return nil, fmt.Errorf("no transform of frame %q came before the cloud", frame)
	}
	all := codec.Pose{0: 1, 5: 1, 10: 1}
	moves := false
	for range maxChain {
		l := t.links[at]
		if at == t.root || l == nil {
			return t.ends(at, &all, moves)
		}
		step, err := l.at(ns)
		if err != nil {
			if isRoot(at) && t.root == "" {
				return t.ends(at, &all, moves)
			}
			return nil, fmt.Errorf("frame %q: %w", at, err)
		}
		all, moves, at = compose(step, &all), moves || l.fixed == nil, l.parent
	}
	return nil, fmt.Errorf("frame %q has more than %d parents", frame, maxChain)
}

// ends returns a pose that leads to a frame, if that is the root.
func (t *transforms) ends(at string, pose *codec.Pose, moves bool) (*codec.Pose, error) {
	switch {
	case t.root == "" && (moves || !t.moving || isRoot(at)):
		t.root = at
	case t.root == "":
		return nil, fmt.Errorf("the way to frame %q has static transforms only so far", at)
	case t.root != at:
		return nil, fmt.Errorf("the way ends at frame %q, not at %q", at, t.root)
	}
	return pose, nil
}
