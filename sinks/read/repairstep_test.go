package read

import (
	"testing"

	"entropipe/schemas"
)

// A step knows which ids its topic may have; without ids nothing is known.
func TestRepairKnowsTheTopic(t *testing.T) {
	id := func(n byte) schemas.TopicID { return schemas.TopicID{n} }
	for _, c := range []struct {
		ids  []string
		id   schemas.TopicID
		want bool
	}{{nil, id(1), true}, {[]string{id(1).String()}, id(1), true}, {[]string{id(1).String()}, id(2), false},
		{[]string{id(1).String(), id(2).String()}, id(2), true}, {[]string{id(1).String()}, id(0), true}} {
		s := RepairStep{ids: c.ids}
		if got := s.Continues(c.id); got != c.want {
			t.Errorf("%q goes on in %q: %t", c.ids, c.id, got)
		}
	}
}
