package web

// Files are the tables that the output has, and what opens them.
type Files struct {
	Out    string  `json:"out"`
	Tables []Table `json:"tables"`
	SQL    string  `json:"sql"` // empty: there is no file yet
	Disk   Disk    `json:"disk"`
}

// Table is what this process has committed to one table.
type Table struct {
	Table     string `json:"table"`
	Files     int64  `json:"files"`
	Rows      int64  `json:"rows"`
	Bytes     int64  `json:"bytes"`
	LastClose int64  `json:"last_close"` // Unix time; 0: none
}

// Disk is the space of the output's file system, bytes; zeros if it is not known.
type Disk struct {
	Free  int64 `json:"free"`
	Total int64 `json:"total"`
}
