package waymo

import "entropipe/schemas/codec"

// stock hands out the images of a column by row, while it reads the column in the order of
// the file. Rows that a later frame needs are kept, up to a budget; beyond it the stock
// keeps those that are needed first, and reads the others again. So memory is bounded
// for any order of rows, and a file in the order of its frames is read once.
type stock[T any] struct {
	lists   *lists
	rank    []int // position of each row's frame in time; -1: never needed
	budget  int64
	fill    func(image *T, row int, values []float32) *codec.Error
	size    func(*T) int64
	most    func(row int) int // number of values of a row
	held    map[int]*T
	bytes   int64
	free    []*T
	scratch []float32
	failed  []failure
}

// failure says which rows cannot be read: those of a row group behind damaged pages.
type failure struct {
	from, end int
	err       *codec.Error
}

// get returns the image of a row, which the caller gives back with drop. now is the rank of
// the frame for which it is read.
func (s *stock[T]) get(row, now int) (*T, *codec.Error) {
	if image := s.held[row]; image != nil {
		return image, nil
	}
	for _, f := range s.failed {
		if row >= f.from && row < f.end {
			return nil, f.err
		}
	}
	s.lists.find(row)
	for s.lists.row < row {
		ahead := s.lists.row
		if rank := s.rank[ahead]; rank >= now && s.held[ahead] == nil && (rank == now || s.room(rank)) {
			if _, err := s.read(ahead); err != nil && s.lists.row == ahead {
				return nil, err // a fault of the pages; one of that row alone waits until its frame
			}
			continue
		}
		if _, err := s.lists.next(nil, 0, false); err != nil {
			return nil, s.fail(ahead, err)
		}
	}
	return s.read(row)
}

// room reports whether an image for a frame of that rank can be kept. It drops the one that
// is needed last, if that is later.
func (s *stock[T]) room(rank int) bool {
	if s.bytes < s.budget {
		return true
	}
	last := -1
	for row := range s.held {
		if last < 0 || s.rank[row] > s.rank[last] || s.rank[row] == s.rank[last] && row > last {
			last = row
		}
	}
	if last < 0 || s.rank[last] <= rank {
		return false
	}
	s.drop(last)
	return true
}

// read reads the next row, and holds it.
func (s *stock[T]) read(row int) (*T, *codec.Error) {
	most := s.most(row)
	values, err := s.lists.next(s.scratch[:0], most, true)
	if err != nil && s.lists.row == row {
		return nil, s.fail(row, err)
	}
	s.scratch = values
	if err == nil && len(values) > 0 && len(values) != most {
		return nil, codec.Errorf(codec.BadLength, -1, "row %d, column %s: %d values, its shape has %d", row,
			s.lists.name,
			len(values), most)
	}
	if err != nil {
		return nil, codec.Errorf(codec.BadValue, -1, "row %d, column %s: %v", row, s.lists.name, err)
	}
	image := new(T)
	if n := len(s.free); n > 0 {
		image, s.free = s.free[n-1], s.free[:n-1]
	}
	if err := s.fill(image, row, values); err != nil {
		s.free = append(s.free, image)
		return nil, codec.Errorf(err.Reason, -1, "row %d, column %s: %s", row, s.lists.name, err.Detail)
	}
	s.held[row] = image
	s.bytes += s.size(image)
	return image, nil
}

// fail remembers that rows from here on cannot be read in this row group.
func (s *stock[T]) fail(row int, err error) *codec.Error {
	fault := codec.Errorf(codec.Corrupt, -1, "row %d, column %s: %v", row, s.lists.name, err)
	s.failed = append(s.failed, failure{row, s.lists.end, fault})
	return fault
}

// drop gives the image of a row back; a row that is not held is none.
func (s *stock[T]) drop(row int) {
	image := s.held[row]
	if image == nil {
		return
	}
	delete(s.held, row)
	s.bytes -= s.size(image)
	s.free = append(s.free, image)
}

// newStock returns a stock of the column. rank has a value for each row of the file.
func newStock[T any](c *column, rank []int, budget int64) *stock[T] {
	return &stock[T]{lists: newLists(c), rank: rank, budget: budget, held: map[int]*T{}}
}
