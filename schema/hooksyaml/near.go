package hooksyaml

import (
	"strings"
	"unicode"
)

// Nearest returns the known word of which s is most likely a misspelling, or "".
func Nearest(s string, known ...string) string { return nearest(s, known) }

// nearest returns the known name that s most likely misspells, or an empty string,
// because a wrong guess is worse than the list of names.
func nearest(s string, known []string) string {
	const most = 64
	if len(s) > most {
		return ""
	}
	plain := folded(s)
	best, bestDistance := "", 3
	for _, k := range known {
		d := distance(plain, folded(k))
		if allowed := min(len(k)/3, 2); d <= allowed && d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return begun(plain, known)
	}
	return best
}

// begun returns the only known name that begins with s.
func begun(s string, known []string) string {
	const least = 5
	found := ""
	for _, k := range known {
		if len(s) < least || !strings.HasPrefix(folded(k), s) {
			continue
		}
		if found != "" {
			return ""
		}
		found = k
	}
	return found
}

// folded removes differences in case and separators.
func folded(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == ' ' {
			return -1
		}
		return unicode.ToLower(c)
	}, s)
}

// distance counts the letters that were added, left out, replaced or swapped with their
// neighbour.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, old, row := rows[(i+2)%3], rows[(i)%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}

// hintFor asks whether a known name near to s was meant; if there is none it returns otherwise.
func hintFor(s string, known []string, otherwise string) string {
	if near := nearest(s, known); near != "" {
		return "did you mean " + quote(near) + "?"
	}
	return otherwise
}
