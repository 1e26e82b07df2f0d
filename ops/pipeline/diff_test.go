package pipeline

import (
	"reflect"

	"github.com/google/go-cmp/cmp"
)

// differ is cmp.Diff, which takes ten times as long as reflect.DeepEqual to find no difference.
func differ(want, got any, options ...cmp.Option) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, options...)
}

// differEach is differ of slices. Elements that options make equal cost no more than they must.
func differEach[T any](want, got []T, options ...cmp.Option) string {
	same := len(want) == len(got)
	for i := 0; same && i < len(want); i++ {
		same = differ(want[i], got[i], options...) == ""
	}
	if same {
		return ""
	}
	return cmp.Diff(want, got, options...)
}
