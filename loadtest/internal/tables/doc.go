// Package tables writes the figures of runs into a page of Markdown, so that no figure
// in it is copied by hand. A page marks the place:
//
//	<!-- figures: calls -->
//
// Between this line and the next line <!-- end --> the page has the view of that name
// (views.go). A view selects figures by name from the files in a folder: bench.json,
// overload.json. If the folder has no file of that run, the view is empty.
package tables
