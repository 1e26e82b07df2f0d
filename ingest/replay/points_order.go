package replay

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// groupOrder finds groups whose rows are not together, in bounded memory: it remembers a number of
// 16 bytes for each group, and of more than mostGroups groups only that they ascend or descend.
type groupOrder struct {
	seeds    [2]maphash.Seed
	seen     map[[2]uint64]struct{} // nil: too many
	groups   int64
	last     []keyValue
	up, down bool // all groups ascend, descend
}

// mostGroups is the number of groups that a groupOrder remembers.
const mostGroups = 2 << 20

func newGroupOrder() *groupOrder {
	return &groupOrder{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		seen: map[[2]uint64]struct{}{}, up: true, down: true}
}

// add takes the keys of the next group. A nil groupOrder accepts all.
func (o *groupOrder) add(names []string, keys []keyValue) error {
	if o == nil {
		return nil
	}
	if o.groups++; o.groups > 1 {
		c := compareKeys(o.last, keys)
		o.up, o.down = o.up && c < 0, o.down && c > 0
	}
	o.last = append(o.last[:0], keys...)
	ordered := o.up || o.down
	sort := "the rows of a group must be together: sort the table by " + strings.Join(names, ", ")
	if o.seen == nil {
		if !ordered {
			return fmt.Errorf("there are more than %d groups, and %s stands out of order; %s",
				mostGroups, keyNames(names,
					keys), sort)
		}
		return nil
	}
	sum := o.sum(keys)
	if _, ok := o.seen[sum]; ok {
		return fmt.Errorf("%s comes a second time, after other groups; %s", keyNames(names, keys), sort)
	}
	if o.seen[sum] = struct{}{}; len(o.seen) > mostGroups {
		o.seen = nil
		if !ordered {
			return fmt.Errorf("there are more than %d groups in no order; %s", mostGroups, sort)
		}
	}
	return nil
}

// sum returns two hashes of the keys.
func (o *groupOrder) sum(keys []keyValue) (sum [2]uint64) {
	for i, seed := range o.seeds {
		var h maphash.Hash
		h.SetSeed(seed)
		for _, k := range keys {
			maphash.WriteComparable(&h, k)
		}
		sum[i] = h.Sum64()
	}
	return sum
}

// compareKeys compares lists of keys, null first.
func compareKeys(a, b []keyValue) int {
	for i := range a {
		if c := a[i].compare(&b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func keyNames(names []string, keys []keyValue) string {
	var parts []string
	for i, name := range names {
		parts = append(parts, fmt.Sprintf("%s %.100s", name, keys[i]))
	}
	return "the group of " + strings.Join(parts, ", ")
}
