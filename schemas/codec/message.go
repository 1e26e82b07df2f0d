package codec

import "math"

// UnpackMessage is Unpack for the messages of sensors, whose drivers name fields freely:
//
//   - Of several fields of one role, such as intensity and reflectivity, one counts, as with
//     AssignRoles. The others are ignored.
//   - The field timestamp is a time of the point, too.
//   - A time in float64 may be absolute: seconds, milliseconds, microseconds or nanoseconds
//     since 1970, whichever gives a date between 1973 and 2262. Such times become offsets to
//     TimeNs. Without HasTime, TimeNs becomes the earliest of them.
//
// p.Fields are changed.
func (c *Cloud) UnpackMessage(p *Packed, data []byte, n int, limit int64) *Error {
	for i := range p.Fields {
		if f := &p.Fields[i]; f.Role == NoRole && f.Name == "timestamp" {
			f.Role = TOffset
		}
	}
	if err := oneEach(p.Fields, func(name string) string { return name }); err != nil {
		return err
	}
	var timed *Field
	for i := range p.Fields {
		if f := &p.Fields[i]; f.Role == TOffset && f.Type == Float64 && f.NsPerUnit == 0 {
			own := *f
			timed = &own
			f.Name, f.Role = "", NoRole
			limit -= 8 * int64(n)
		}
	}
	if err := c.Unpack(p, data, n, limit); err != nil || timed == nil {
		return err
	}
	if timed.Offset < 0 || timed.Offset > p.Stride-8 {
		return Errorf(BadLength, -1, "field %s of 8 bytes stands at byte %d of a point of %d bytes", timed.Name,
			timed.Offset, p.Stride)
	}
	raw := c.Float64s(TOffset, n)
	unpack(p, timed, data, raw)
	c.TOffsetNs = c.Int64s(TOffset, n)
	c.offsets(raw)
	return nil
}

// offsets fills TOffsetNs from times in seconds, or from absolute times. A time that is not
// finite gets the offset 0.
func (c *Cloud) offsets(raw []float64) {
	first, last := math.Inf(1), math.Inf(-1)
	for _, v := range raw {
		if v < first && v >= -math.MaxFloat64 { // a NaN is neither
			first = v
		}
		if v > last && v <= math.MaxFloat64 {
			last = v
		}
	}
	const date = 9.2e9 // seconds since 1970 that fit into int64 nanoseconds
	var perUnit int64
	switch {
	case !(last >= 1e8):
		for i, v := range raw {
			c.TOffsetNs[i] = 0
			if !math.IsInf(v, 0) {
				c.TOffsetNs[i] = roundNs(v * 1e9)
			}
		}
		return
	case last < date:
		perUnit = 1e9
	case last < date*1e3:
		perUnit = 1e6
	case last < date*1e6:
		perUnit = 1e3
	default:
		perUnit = 1
	}
	base := c.TimeNs
	if !c.HasTime {
		base = absolute(first, perUnit)
		c.TimeNs, c.HasTime = base, true
	}
	for i, v := range raw {
		c.TOffsetNs[i] = 0
		if !math.IsInf(v, 0) && v == v {
			c.TOffsetNs[i] = absolute(v, perUnit) - base
		}
	}
}

// absolute returns v units in nanoseconds, without the rounding of a product in float64.
func absolute(v float64, perUnit int64) int64 {
	if perUnit == 1 && v >= 1<<52 && v < 1<<62 { // a whole number
		return int64(v)
	}
	whole := math.Floor(v)
	return roundNs(whole)*perUnit + roundNs((v-whole)*float64(perUnit))
}
