// Package tables puts what runs wrote as JSON into a page of Markdown, so that no
// figure in it is copied by hand. A page says where: between a line
//
//	<!-- figures: budgets -->
//
// and a line <!-- end --> stands the view of that name (views.go). A view is made of
// the files of a folder, named for the run that wrote them: bench.json, overload.json. One
// whose file is not there is empty.
package tables
