package tables

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const ending = "<!-- end -->"

// Fill puts the figures in the folder dir between the markers of a page. What stood
// there is gone, and the rest of the page is as it was.
func Fill(page, dir string) (string, error) {
	var filled strings.Builder
	var errs []error
	marker := regexp.MustCompile(`(?m)^<!-- figures: (.*) -->\n`)
	for {
		at := marker.FindStringSubmatchIndex(page)
		if at == nil {
			filled.WriteString(page)
			return filled.String(), errors.Join(errs...)
		}
		name := page[at[2]:at[3]]
		filled.WriteString(page[:at[1]])
		page = page[at[1]:]
		end := strings.Index(page, ending)
		if next := marker.FindStringIndex(page); end < 0 || next != nil && next[0] < end {
			return "", fmt.Errorf("the figures %q have no %s", name, ending)
		}
		page = page[end:]
		view, err := View(dir, name)
		errs = append(errs, err)
		if view != "" {
			filled.WriteString("\n" + view + "\n")
		}
	}
}

// View is one view of the figures in the folder dir.
func View(dir, name string) (string, error) {
	made, ok := views()[name]
	if !ok {
		return "", fmt.Errorf("there are no figures %q; there are %v", name, Names())
	}
	return made(dir)
}

// Names are the names of all views.
func Names() []string { return slices.Sorted(maps.Keys(views())) }
