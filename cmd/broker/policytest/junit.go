package policytest

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// JUnit is the report of all cases in the form that CI systems read.
type JUnit struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes results as JUnit XML.
func WriteJUnit(w io.Writer, results []Result) error {
	report := JUnit{Name: "hookfabric", Tests: len(results)}
	for i := range results {
		r := &results[i]
		c := junitCase{Name: r.Name, Class: r.File}
		if !r.OK {
			report.Failures++
			c.Failure = &junitFailure{Message: strings.Join(r.Want, "; "), Text: strings.Join(r.Got, "\n")}
		}
		report.Cases = append(report.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(report); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
