package embedded

// WhoLeft is whoLeft for tests.
var WhoLeft = whoLeft
