package action

import (
	"slices"
	"strings"
)

// code adds the inline code of an interpreter. It reports whether the interpreter reads its program
// from elsewhere, so that it is known only at run time.
func (w *walker) code(c invocation, language string) (dynamic bool) {
	words := c.words[1:]
	if language == "awk" {
		w.awk(words)
		return false
	}
	for i, f := range words {
		switch {
		case codeOption(language, f.text) && i+1 < len(words):
			w.addCode(language, words[i+1].text)
			return words[i+1].open
		case language == "javascript" && f.text == "eval" && i+1 < len(words):
			w.addCode(language, words[i+1].text)
			return words[i+1].open
		case strings.HasPrefix(f.text, "--eval="):
			w.addCode(language, f.text[len("--eval="):])
			return f.open
		case f.text != "-" && !strings.HasPrefix(f.text, "-"):
			return false // a script file
		}
	}
	if c.in.given && !c.in.open {
		w.addCode(language, c.in.text)
	}
	return c.in.open
}

// awk adds the program of awk.
func (w *walker) awk(words []field) {
	options := prefix{short: "Fvf", long: []string{"field-separator", "assign", "file"}}
	for len(words) > 0 && len(words[0].text) > 1 && words[0].text[0] == '-' {
		if strings.HasPrefix(words[0].text, "-f") || strings.HasPrefix(words[0].text, "--file") {
			return
		}
		words = words[min(options.width(words[0].text), len(words)):]
	}
	if len(words) > 0 {
		w.addCode("awk", words[0].text)
	}
}

func (w *walker) addCode(language, text string) {
	code := Code{language, text}
	if !slices.Contains(w.out.Code, code) && len(w.out.Code) < maxCommands {
		w.out.Code = append(w.out.Code, code)
	}
}
