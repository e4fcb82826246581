// Package report shows results: in a terminal, as a page of HTML that needs
// nothing beside it, and each plot as a picture of its own.
package report
