package action

import (
	"path"
	"strings"
)

// locate sets where each path is, seen from the working folder. If that is unknown, no path is inside.
func (a *Action) locate(folder string) {
	for i := range a.Paths {
		p := &a.Paths[i]
		rest, below := strings.CutPrefix(p.Path, strings.TrimSuffix(path.Clean(folder), "/")+"/")
		p.Inside = below && strings.HasPrefix(folder, "/") && !p.Remote && staysInside(rest)
		p.Git = mayName(p.Path, ".git")
	}
}

// staysInside reports whether a relative path is below its folder for certain.
func staysInside(rest string) bool {
	return rest != "" && !strings.Contains(rest, "$") && !strings.Contains(rest, "`") && !mayName(rest, "..")
}

// mayName reports whether an element of a path is a name, or a pattern that may match it. As in a shell,
// only a pattern that begins with a dot matches a name that does, except after "**", where find
// looks.
func mayName(p, name string) bool {
	deep := false
	for element := range strings.SplitSeq(p, "/") {
		switch {
		case element == name:
			return true
		case element == "**":
			deep = name != ".." // find does not go up
			continue
		case !strings.ContainsAny(element, "*?["), !deep && !strings.HasPrefix(element, "."):
			continue
		}
		if matches, err := path.Match(strings.ReplaceAll(element, "[!", "[^"), name); matches || err != nil {
			return true
		}
	}
	return false
}
