// Programs with generators of others, which tests run under node IDs.
module generators

go 1.26.0

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/sony/sonyflake/v2 v2.2.0
)
