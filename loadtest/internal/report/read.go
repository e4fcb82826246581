package report

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hookfabric/hookfabric/schema"
)

// most limits the size of a result file. A run of days writes a hundredth of it.
const most = 256 << 20

// Read decodes the JSON of a run. It ignores other members of the report.
func Read(r io.Reader) (*Document, error) {
	body, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("reading a result: %w", err)
	}
	if len(body) > most {
		return nil, fmt.Errorf("the file is longer than %d MiB, so it is not a report of a load test", most>>20)
	}
	d := new(Document)
	if err := schema.Unmarshal(body, d); err != nil {
		return nil, fmt.Errorf("the file is not a report that a load test wrote with --json: %w", err)
	}
	if d.Scenario == "" {
		return nil, errors.New("the file is JSON, but not a report that a load test wrote with --json: it names no scenario")
	}
	if err := d.Sound(); err != nil {
		return nil, fmt.Errorf("the report is inconsistent: %w", err)
	}
	return d, nil
}

// ReadFile reads the result in a file.
func ReadFile(name string) (*Document, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading a result: %w", err)
	}
	defer f.Close()
	d, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// Sound returns an error with all contradictions in the document.
func (d *Document) Sound() error {
	var errs []error
	names := map[string]bool{}
	for _, f := range d.Figures {
		if f.Name == "" || names[f.Name] {
			errs = append(errs, fmt.Errorf("two figures have the name %q, or one has no name", f.Name))
		}
		names[f.Name] = true
		if !(f.Low <= f.Value && f.Value <= f.High) {
			errs = append(errs, fmt.Errorf("the figure %q is %v, outside its interval from %v to %v", f.Name, f.Value, f.Low, f.High))
		}
	}
	for _, p := range d.Plots {
		for _, l := range p.Lines {
			errs = append(errs, l.sound(p.Title))
		}
	}
	return errors.Join(errs...)
}

// sound returns an error if the slices of a line have different lengths.
func (l Line) sound(plot string) error {
	n := len(l.X)
	if len(l.Y) != n || len(l.Low) != 0 && len(l.Low) != n || len(l.Low) != len(l.High) {
		return fmt.Errorf("in the plot %q the line %q has %d x, %d y, %d low and %d high", plot, l.Name, n, len(l.Y), len(l.Low), len(l.High))
	}
	return nil
}
