package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Text returns a figure with its unit.
func Text(f Figure) string { return Value(f.Value, f.Unit) }

// Print writes documents for a terminal.
func Print(w io.Writer, docs ...*Document) error {
	var b strings.Builder
	for i, d := range docs {
		if i > 0 {
			b.WriteString("\n\n")
		}
		if err := printed(&b, d); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func printed(w *strings.Builder, d *Document) error {
	fmt.Fprintln(w, d.Title)
	if len(d.Figures) > 0 {
		fmt.Fprintln(w)
		if err := grid(w, figures(d)); err != nil {
			return err
		}
	}
	for _, t := range d.Tables {
		fmt.Fprintf(w, "\n%s\n", t.Title)
		if err := grid(w, t); err != nil {
			return err
		}
		if t.Note != "" {
			fmt.Fprintln(w, t.Note)
		}
	}
	if len(d.Checks) > 0 {
		fmt.Fprintln(w)
		if err := grid(w, checks(d)); err != nil {
			return err
		}
		examples(w, d)
	}
	if len(d.Notes) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(d.Notes, "\n"))
	}
	fmt.Fprintln(w)
	for _, c := range circumstances(d) {
		fmt.Fprintf(w, "%s: %s\n", c[0], c[1])
	}
	if s := Summary(d); s != "" {
		fmt.Fprintln(w, s)
	}
	return nil
}

// examples writes the examples of failed checks, one a line.
func examples(w *strings.Builder, d *Document) {
	for _, c := range d.Checks {
		for _, example := range c.Examples {
			fmt.Fprintf(w, "%s: %s\n", c.Name, example)
		}
	}
}

// Interval returns a figure's 95 % interval in the scale of its value, or "" without
// samples. Ends of another magnitude than the value have their own scales.
func Interval(f Figure) string {
	const legible = 10_000
	if f.Low == f.High {
		return ""
	}
	most := max(math.Abs(f.Low), math.Abs(f.High))
	s, ends := For(f.Unit, f.Value), For(f.Unit, most)
	if f.Value == 0 || ends.Per > s.Per && most >= legible*s.Per {
		return fmt.Sprintf("[%s %s]", Value(f.Low, f.Unit), Value(f.High, f.Unit))
	}
	return fmt.Sprintf("[%s %s]", s.Number(f.Low), s.Number(f.High))
}

// Budget returns the budget of a figure, in words.
func Budget(f Figure) string {
	if f.Budget == nil {
		return ""
	}
	bound := "≤ "
	switch f.Better {
	case Higher:
		bound = "≥ "
	case Neither:
		bound = ""
	}
	return bound + Value(*f.Budget, f.Unit)
}

// kept returns a text that says whether a figure is within its budget, or "" without a
// budget.
func kept(f Figure) string {
	switch {
	case f.Budget == nil || f.Better == Neither:
		return ""
	case f.OK():
		return "ok"
	default:
		return "OVER BUDGET"
	}
}

// held returns the result of a check, in words.
func held(c Check) string {
	switch {
	case c.OK():
		return "ok"
	case c.Wrong == 0:
		return fmt.Sprintf("NOT TESTED: seen %s times instead of %s", count(c.Seen), count(c.Least))
	default:
		return "VIOLATION"
	}
}

func count(n int64) string { return Thousands(fmt.Sprint(n)) }

// circumstances returns when, where and how a run was made: pairs of a name and a text.
func circumstances(d *Document) [][2]string {
	var all [][2]string
	add := func(name, what string) {
		if what != "" {
			all = append(all, [2]string{name, what})
		}
	}
	add("scenario", d.Scenario)
	add("command", d.Command)
	if !d.Started.IsZero() {
		when := d.Started.UTC().Format("2006-01-02 15:04:05 UTC")
		if d.Took > 0 {
			when += fmt.Sprintf(", for %v", time.Duration(d.Took*float64(time.Second)).Round(100*time.Millisecond))
		}
		add("when", when)
	}
	if d.Machine.OS != "" {
		add("machine", d.Machine.String())
	}
	return all
}

// Summary returns the result of a run in one sentence.
func Summary(d *Document) string {
	broken, over, judged := 0, 0, 0
	for _, c := range d.Checks {
		if !c.OK() {
			broken++
		}
	}
	for _, f := range d.Figures {
		if kept(f) != "" {
			judged++
		}
		if !f.OK() {
			over++
		}
	}
	var parts []string
	if len(d.Checks) > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d checks held", len(d.Checks)-broken, len(d.Checks)))
	}
	if judged > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d budgets kept", judged-over, judged))
	}
	return strings.Join(parts, ", ")
}
