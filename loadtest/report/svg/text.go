package svg

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// family are the fonts that text is set in, the widest first: what is laid out
// by its widths leaves room to spare in all others.
const family = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"

// widths are the advances of DejaVu Sans from the space to the tilde, in
// thousandths of the font's size.
func widths() [95]int {
	return [...]int{
		318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636, 636,
		636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
		603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635,
		634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
	}
}

// Advances of what is not in the table: letters of Latin, Greek and Cyrillic
// with room to spare, and all that is as wide as it is high.
const (
	other = 850
	wide  = 1250
)

// Width is how wide text of that size is drawn at most.
func Width(text string, size float64) float64 {
	table, sum := widths(), 0
	for _, r := range text {
		switch {
		case r >= ' ' && int(r-' ') < len(table):
			sum += table[r-' ']
		case r < 0x1100:
			sum += other
		case r >= 0x2010 && r < 0x2600: // dashes, dots, mathematical signs, arrows
			sum += 1000
		default:
			sum += wide
		}
	}
	return float64(sum) * size / 1000
}

// fitted is text, cut where it would be wider than most.
func fitted(text string, size, most float64) string {
	if Width(text, size) <= most {
		return text
	}
	for len(text) > 0 && Width(text+"…", size) > most {
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
	}
	return text + "…"
}

// wrapped is text in lines that are no wider than most, broken between words
// where there are any.
func wrapped(text string, size, most float64) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case Width(line+" "+word, size) <= most:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
		line = fitted(line, size, most)
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// legibly is the plot with texts that can be written: what is no character at
// all takes the place of one.
func legibly(p result.Plot) result.Plot {
	p.Title, p.X.Label, p.Y.Label = clean(p.Title), clean(p.X.Label), clean(p.Y.Label)
	p.X.Unit, p.Y.Unit = clean(p.X.Unit), clean(p.Y.Unit)
	p.Lines, p.Marks = slices.Clone(p.Lines), slices.Clone(p.Marks)
	for i := range p.Lines {
		p.Lines[i].Name = clean(p.Lines[i].Name)
	}
	for i := range p.Marks {
		p.Marks[i].Label = clean(p.Marks[i].Label)
	}
	return p
}

func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}
