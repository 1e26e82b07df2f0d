package schemas

// Committed counts what one commit wrote, for the metrics.
type Committed struct {
	Tables []TableFiles
}

// TableFiles counts the files of one table in a commit.
type TableFiles struct {
	Table string
	Files int
	Rows  int64
	Bytes int64
}
