module github.com/firnid/firn/bench

go 1.26.0

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/edwingeng/wuid v1.0.0
	github.com/firnid/firn v0.0.0
	github.com/godruoyi/go-snowflake v0.0.2
	github.com/gofrs/uuid/v5 v5.5.1
	github.com/google/uuid v1.6.0
	github.com/influxdata/influxdb v1.11.8
	github.com/matoous/go-nanoid/v2 v2.1.0
	github.com/muyo/sno v1.2.1
	github.com/oklog/ulid/v2 v2.1.2
	github.com/rs/xid v1.6.0
	github.com/segmentio/ksuid v1.0.4
	github.com/sony/sonyflake v1.3.0
	github.com/sony/sonyflake/v2 v2.2.0
	github.com/speps/go-hashids/v2 v2.0.1
	github.com/sqids/sqids-go v0.4.1
	github.com/yitter/idgenerator-go v1.3.3
	go.jetify.com/typeid v1.3.0
)

require (
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/edwingeng/slog v0.0.0-20221027170832-482f0dfb6247 // indirect
	github.com/pmezard/go-difflib v1.0.1-0.20181226105442-5d4384ee4fb2 // indirect
	github.com/stretchr/testify v1.11.1 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.27.1 // indirect
)

replace (
	github.com/firnid/firn => ../
	github.com/firnid/firn/etcdstore => ../etcdstore
	github.com/firnid/firn/server => ../server
)
