package schemas

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTopicIDsAreWrittenAsKafkaWritesThem(t *testing.T) {
	// The form of org.apache.kafka.common.Uuid.toString.
	id := TopicID{0xf9, 0x8d, 0x9b, 0xf1, 0xc9, 0x84, 0x4e, 0x2f, 0xb3, 0x3c, 0x33, 0xb0, 0x9e, 0x3a, 0x5f, 0xfe}
	if got, want := id.String(), "-Y2b8cmETi-zPDOwnjpf_g"; got != want {
		t.Errorf("%x is %q, want %q", id[:], got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		id := TopicID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		if back, err := ParseTopicID(id.String()); err != nil || back != id {
			t.Fatalf("%x became %q and then %x, %v", id[:], id, back[:], err)
		}
	})
}

func TestWhatIsNoTopicIDIsRefused(t *testing.T) {
	for _, s := range []string{"x", "-Y2b8cmETi-zPDOwnjpf_g==", "-Y2b8cmETi-zPDOwnjpf_h", "+Y2b8cmETi+zPDOwnjpf/g",
		strings.Repeat("A", 22), strings.Repeat("A", 23), " "} {
		if id, err := ParseTopicID(s); err == nil {
			t.Errorf("%q passes for %x", s, id[:])
		}
	}
	if id, err := ParseTopicID(""); err != nil || !id.IsZero() || id.String() != "" {
		t.Errorf("no id is %x, %v", id[:], err)
	}
}

func TestRecreatedTopicIsNamedWithItsIDs(t *testing.T) {
	was, is := TopicID{1}, TopicID{2}
	err := (&RecreatedError{Topic: "points", Partition: 3, Was: was, Is: is}).Error()
	for _, part := range []string{"points/3: ", "deleted and created again", was.String(), is.String(), "--out",
		"--accept-topic points"} {
		if !strings.Contains(err, part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	if err := (&RecreatedError{Topic: "points", Partition: -1, Was: was, Is: is}).Error(); !strings.HasPrefix(err,
		"points: ") {
		t.Errorf("of a whole topic: %q", err)
	}
	if err := (&RecreatedError{Topic: "points", Detail: "its log ends at offset 3"}).Error(); strings.Contains(err,
		"accept-topic") || !strings.Contains(err, "its log ends at offset 3") {
		t.Errorf("without ids: %q", err)
	}
}
