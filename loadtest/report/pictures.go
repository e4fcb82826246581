package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/report/svg"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// Pictures writes every plot of the document as a file into dir, which it makes
// if need be, and returns their names.
func Pictures(dir string, d *result.Document) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a directory for the pictures: %w", err)
	}
	var names []string
	used := map[string]int{}
	for _, p := range d.Plots {
		name := filed(d.Scenario + " " + p.Title)
		if used[name]++; used[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, used[name])
		}
		file := filepath.Join(dir, name+".svg")
		if err := picturedIn(file, p); err != nil {
			return names, err
		}
		names = append(names, file)
	}
	return names, nil
}

func picturedIn(file string, p result.Plot) error {
	var b strings.Builder
	if err := svg.Draw(&b, p); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("writing a picture: %w", err)
	}
	return nil
}

// filed is a text as the name of a file: letters and digits with dashes between.
func filed(text string) string {
	const longest = 80
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	return strings.Trim(name[:min(len(name), longest)], "-")
}
