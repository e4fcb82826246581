package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Pictures writes every plot of the document into the folder dir, and returns the file names.
func Pictures(dir string, d *Document) ([]string, error) {
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
		picture, err := svg(p, ` xmlns="http://www.w3.org/2000/svg"`)
		if err != nil {
			return names, err
		}
		names = append(names, filepath.Join(dir, name+".svg"))
		if err := os.WriteFile(names[len(names)-1], []byte(picture), 0o644); err != nil {
			return names, fmt.Errorf("writing a picture: %w", err)
		}
	}
	return names, nil
}

// filed returns a text as a file name: letters and digits with dashes between.
func filed(text string) string {
	const longest = 80
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	return strings.Trim(name[:min(len(name), longest)], "-")
}
