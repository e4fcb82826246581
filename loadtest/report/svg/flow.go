package svg

// flow sets things of different widths beside each other, and the next row
// below where there is no room.
type flow struct {
	left, right float64
	x, y        float64
}

// place is where the next thing of that width begins.
func (f *flow) place(width float64) point {
	const apart = 24
	if f.x > f.left && f.x+width > f.right {
		f.x, f.y = f.left, f.y+row
	}
	at := point{f.x, f.y}
	f.x += width + apart
	return at
}
