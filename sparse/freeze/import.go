package freeze

import "entropipe/sparse/support"

// Mask is a mask of another program.
type Mask struct{ Set *support.Set }

func (f *run) imported() (*support.Set, error) { return f.o.Import.Set, nil }
