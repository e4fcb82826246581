package svg

import (
	"fmt"
	"strings"
)

// Style is the style sheet of all pictures, once for a page or once in a file.
// Colours are those of Okabe and Ito, lighter where the page is dark.
func Style() string {
	light := [colours]string{"#0072b2", "#d55e00", "#009e73", "#b0558a", "#b07d00", "#3a9bd4", "#555555"}
	dark := [colours]string{"#5aa9e6", "#ff8a4c", "#2fcb9b", "#e9a3c9", "#f2c14e", "#a8dcff", "#cccccc"}
	return `.bg{fill:#ffffff}.h{font-weight:600;fill:#1b1f24}.l{fill:#1b1f24}.t{fill:#424a53}.b{fill:#ffffff}` +
		`.g{stroke:#e3e6ea}.f{stroke:#57606a}.mark{stroke:#8b2942;stroke-width:1.2;stroke-dasharray:4 3}.during{fill:#8b2942;fill-opacity:.13}.badge{fill:#8b2942}` +
		coloured(light) +
		`@media (prefers-color-scheme:dark){.bg{fill:#14171a}.h,.l{fill:#e6e9ec}.t{fill:#b4bac0}.b{fill:#14171a}` +
		`.g{stroke:#2c3238}.f{stroke:#8b949e}.mark{stroke:#ff9db0}.during{fill:#ff9db0}.badge{fill:#ff9db0}` + coloured(dark) + `}`
}

// coloured gives lines, areas and dots their colours.
func coloured(palette [colours]string) string {
	var b strings.Builder
	for i, c := range palette {
		fmt.Fprintf(&b, ".c%[1]d{fill:none;stroke:%[2]s;stroke-width:2;stroke-linejoin:round}.a%[1]d{fill:%[2]s;fill-opacity:.16}.d%[1]d{fill:%[2]s}", i, c)
	}
	return b.String()
}
