-- The state of a home of 0.1.0 (schema version 3), as its own code made it. SQLite says INTEGER for BIGSERIAL.

CREATE TABLE mv_attempt (view VARCHAR NOT NULL, bucket BIGINT NOT NULL, count INTEGER NOT NULL, generation VARCHAR, last_error TEXT, retry_after BIGINT, inputs TEXT, PRIMARY KEY (view, bucket));
CREATE TABLE mv_definition (view VARCHAR NOT NULL, definition VARCHAR NOT NULL, width VARCHAR NOT NULL, since BIGINT NOT NULL, PRIMARY KEY (view, definition));
CREATE TABLE mv_event (id BIGSERIAL NOT NULL, view VARCHAR NOT NULL, bucket BIGINT, operation VARCHAR NOT NULL, before VARCHAR, after VARCHAR, version BIGINT NOT NULL, at BIGINT NOT NULL, who VARCHAR NOT NULL, why TEXT, PRIMARY KEY (id));
CREATE INDEX mv_event_bucket ON mv_event (view, bucket, id);
CREATE TABLE mv_generation (id VARCHAR NOT NULL, view VARCHAR NOT NULL, state VARCHAR NOT NULL, heartbeat_at BIGINT NOT NULL, dead_since BIGINT, files TEXT NOT NULL, PRIMARY KEY (id));
CREATE INDEX mv_generation_state ON mv_generation (view, state);
CREATE TABLE mv_inventory (table_name VARCHAR NOT NULL, name VARCHAR NOT NULL, identity BIGINT NOT NULL, crc BIGINT NOT NULL, start_ms BIGINT, end_ms BIGINT, nulls BIGINT NOT NULL, trusted BOOLEAN NOT NULL, error TEXT, PRIMARY KEY (table_name, name));
CREATE TABLE mv_lease (id VARCHAR NOT NULL, view VARCHAR NOT NULL, version BIGINT NOT NULL, expires_at BIGINT NOT NULL, who VARCHAR NOT NULL, PRIMARY KEY (id));
CREATE INDEX mv_lease_view ON mv_lease (view, version);
CREATE TABLE mv_look (view VARCHAR NOT NULL, table_version VARCHAR NOT NULL, map_version BIGINT NOT NULL, at BIGINT NOT NULL, recheck_at BIGINT, broken TEXT NOT NULL, vacant BIGINT, unserved BIGINT, unserved_since BIGINT, PRIMARY KEY (view));
CREATE TABLE mv_partition (view VARCHAR NOT NULL, bucket BIGINT NOT NULL, state VARCHAR NOT NULL, token BIGINT NOT NULL, inputs TEXT, generation VARCHAR, content BIGINT, rows BIGINT NOT NULL, bytes BIGINT NOT NULL, duration_ms BIGINT NOT NULL, operation VARCHAR, refreshed_at BIGINT, reason TEXT, forced BOOLEAN NOT NULL, forced_at BIGINT NOT NULL, frozen BOOLEAN NOT NULL, segments TEXT, PRIMARY KEY (view, bucket));
CREATE INDEX mv_partition_generation ON mv_partition (generation);
CREATE TABLE mv_schema (version INTEGER NOT NULL, PRIMARY KEY (version));
CREATE TABLE mv_trouble (view VARCHAR NOT NULL, doing VARCHAR NOT NULL, since BIGINT NOT NULL, what TEXT NOT NULL, PRIMARY KEY (view, doing));
CREATE TABLE mv_view (view VARCHAR NOT NULL, version BIGINT NOT NULL, watermark BIGINT NOT NULL, width VARCHAR NOT NULL, start BIGINT NOT NULL, definition VARCHAR NOT NULL, source_end BIGINT, reset_at BIGINT NOT NULL, PRIMARY KEY (view));


INSERT INTO mv_definition VALUES ('by_name', '30e7c6186ac46fc8', '1d', 4);
INSERT INTO mv_definition VALUES ('by_name', 'f12757ef3b0f30fe', '1d', 1);
INSERT INTO mv_definition VALUES ('daily', '38c08b6131a61ba5', '1d', 1);
INSERT INTO mv_definition VALUES ('hourly', 'ce681fc9fcf6280f', '6h', 1);
INSERT INTO mv_definition VALUES ('nested', '4db954eb331f7b63', '1d', 1);

INSERT INTO mv_event VALUES (1, 'hourly', NULL, 'DECLARE', NULL, NULL, 1, 1706745600001, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (2, 'by_name', NULL, 'DECLARE', NULL, NULL, 1, 1706745600020, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (3, 'nested', NULL, 'DECLARE', NULL, NULL, 1, 1706745600027, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (4, 'daily', NULL, 'DECLARE', NULL, NULL, 1, 1706745600034, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (5, 'hourly', NULL, 'LOOK', NULL, NULL, 2, 1706745600063, 'you with mv-assets refresh', 'the source''s end moved');
INSERT INTO mv_event VALUES (6, 'by_name', NULL, 'LOOK', NULL, NULL, 2, 1706745600404, 'you with mv-assets refresh', 'the source''s end moved');
INSERT INTO mv_event VALUES (7, 'nested', NULL, 'LOOK', NULL, NULL, 2, 1706745600439, 'you with mv-assets refresh', 'the source''s end moved');
INSERT INTO mv_event VALUES (8, 'daily', NULL, 'LOOK', NULL, NULL, 2, 1706745600441, 'you with mv-assets refresh', 'the source''s end moved');
INSERT INTO mv_event VALUES (9, 'hourly', 1704067200000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (10, 'hourly', 1704088800000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (11, 'hourly', 1704110400000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (12, 'hourly', 1704132000000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (13, 'hourly', 1704153600000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (14, 'hourly', 1704175200000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (15, 'hourly', 1704196800000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (16, 'hourly', 1704218400000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (17, 'hourly', 1704240000000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (18, 'hourly', 1704261600000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (19, 'hourly', 1704283200000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (20, 'hourly', 1704304800000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600623, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (21, 'by_name', 1704067200000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600722, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (22, 'by_name', 1704153600000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600722, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (23, 'by_name', 1704240000000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600722, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (24, 'nested', 1704067200000, 'APPEND', 'VACANT', 'VALID', 3, 1706745600791, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (25, 'daily', NULL, 'LOOK', NULL, NULL, 3, 1706745600871, 'you with mv-assets refresh', 'the source''s end moved');
INSERT INTO mv_event VALUES (26, 'daily', 1704067200000, 'APPEND', 'VACANT', 'VALID', 4, 1706745600964, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (27, 'daily', 1704153600000, 'APPEND', 'VACANT', 'VALID', 4, 1706745600964, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (28, 'daily', 1704240000000, 'APPEND', 'VACANT', 'VALID', 4, 1706745600964, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (29, 'by_name', NULL, 'TAKE_OVER', NULL, NULL, 4, 1706745600008, 'you with mv-assets refresh', 'definition 30e7c6186ac46fc8');
INSERT INTO mv_event VALUES (30, 'by_name', NULL, 'LOOK', NULL, NULL, 5, 1706745600039, 'you with mv-assets refresh', 'the source''s end moved');
INSERT INTO mv_event VALUES (31, 'by_name', 1704067200000, 'OVERWRITE', 'VALID', 'VALID', 6, 1706745600135, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (32, 'by_name', 1704153600000, 'OVERWRITE', 'VALID', 'VALID', 6, 1706745600135, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (33, 'by_name', 1704240000000, 'OVERWRITE', 'VALID', 'VALID', 6, 1706745600135, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (34, 'hourly', 1704153600000, 'MARK', 'VALID', 'STALE', 4, 1706745600076, 'you with mv-assets refresh', '1 segment added (late.parquet)');
INSERT INTO mv_event VALUES (35, 'by_name', 1704153600000, 'MARK', 'VALID', 'STALE', 7, 1706745600085, 'you with mv-assets refresh', '1 segment added (late.parquet)');
INSERT INTO mv_event VALUES (36, 'hourly', 1704153600000, 'OVERWRITE', 'STALE', 'VALID', 5, 1706745600200, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (37, 'by_name', 1704153600000, 'OVERWRITE', 'STALE', 'VALID', 8, 1706745600260, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (38, 'daily', 1704153600000, 'MARK', 'VALID', 'STALE', 5, 1706745600294, 'you with mv-assets refresh', '1 segment changed (2024-01-02T00:00)');
INSERT INTO mv_event VALUES (39, 'daily', 1704153600000, 'OVERWRITE', 'STALE', 'VALID', 6, 1706745600350, 'you with mv-assets refresh', NULL);
INSERT INTO mv_event VALUES (40, 'daily', 1704240000000, 'FORCE', 'VALID', 'STALE', 7, 1706745600001, 'you with mv-assets refresh', 'by hand');

INSERT INTO mv_generation VALUES ('6a745c4b853f4b4b8095be56bc7433dd', 'daily', 'LIVE', 1706745600000, NULL, '[["daily/6a745c4b853f4b4b8095be56bc7433dd/part-0.parquet",1596,3]]');
INSERT INTO mv_generation VALUES ('7e0300b6d2d14e12a90ea7c25f58cc2e', 'hourly', 'LIVE', 1706745600000, NULL, '[["hourly/7e0300b6d2d14e12a90ea7c25f58cc2e/part-0.parquet",1793,2]]');
INSERT INTO mv_generation VALUES ('8be04b653e4d4c33b80873a3fcedf90d', 'hourly', 'LIVE', 1706745600000, NULL, '[["hourly/8be04b653e4d4c33b80873a3fcedf90d/part-0.parquet",1935,9]]');
INSERT INTO mv_generation VALUES ('9cecb622574e43aa8cf4d45ec2b37b7d', 'by_name', 'LIVE', 1706745600000, NULL, '[["by_name/9cecb622574e43aa8cf4d45ec2b37b7d/part-0.parquet",1388,6]]');
INSERT INTO mv_generation VALUES ('b2f9de844d274a9cb180be156969ae28', 'by_name', 'DEAD', 1706745600000, 6, '[["by_name/b2f9de844d274a9cb180be156969ae28/part-0.parquet",1388,6]]');
INSERT INTO mv_generation VALUES ('bc985bdf92f141c6a0e7ec93e2281cb8', 'by_name', 'LIVE', 1706745600000, NULL, '[["by_name/bc985bdf92f141c6a0e7ec93e2281cb8/part-0.parquet",1346,2]]');
INSERT INTO mv_generation VALUES ('bd2cd39271044d7694f77afba3d82220', 'daily', 'LIVE', 1706745600000, NULL, '[["daily/bd2cd39271044d7694f77afba3d82220/part-0.parquet",1560,1]]');
INSERT INTO mv_generation VALUES ('eb312a42191c41eca9facc0086cad0ec', 'nested', 'LIVE', 1706745600000, NULL, '[["nested/eb312a42191c41eca9facc0086cad0ec/part-0.parquet",1213,1]]');

INSERT INTO mv_inventory VALUES ('trips:a7aa0683', '0.parquet', -7909137960521637760, 1407150527046725237, 1704067200000, 1704153599999, 0, FALSE, NULL);
INSERT INTO mv_inventory VALUES ('trips:a7aa0683', '1.parquet', 6641144223031578896, -7985786890856701716, 1704153600000, 1704239999999, 0, FALSE, NULL);
INSERT INTO mv_inventory VALUES ('trips:a7aa0683', '2.parquet', 6102538789722793880, -3433627341783700683, 1704240000000, 1704326399999, 0, FALSE, NULL);
INSERT INTO mv_inventory VALUES ('trips:a7aa0683', 'broken.parquet', -2171967114111448331, -9063610678067773193, NULL, NULL, 0, FALSE, 'it can''t be read as Parquet (Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file.)');
INSERT INTO mv_inventory VALUES ('trips:a7aa0683', 'late.parquet', 5304471996660428485, 6772270537948194764, 1704171600000, 1704171600000, 0, FALSE, NULL);
INSERT INTO mv_inventory VALUES ('zones:d1869820', 'zones.parquet', 6041503095785950384, 4302471318226724043, -9223372036854775808, 9223372036854775807, 0, FALSE, NULL);


INSERT INTO mv_look VALUES ('by_name', '1920898402314714407', 8, 1706745600065, 1706745600065, '["trips: file broken.parquet: it can''t be read as Parquet (Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file.)"]', 1704326400000, NULL, NULL);
INSERT INTO mv_look VALUES ('daily', '3250997516319588785', 7, 1706745600087, NULL, '[]', NULL, 1704240000000, 1706745600087);
INSERT INTO mv_look VALUES ('hourly', '3307174532391236043', 5, 1706745600000, 1706745600000, '["trips: file broken.parquet: it can''t be read as Parquet (Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file.)"]', 1704326400000, NULL, NULL);
INSERT INTO mv_look VALUES ('nested', '-7964539693369597879', 3, 1706745600045, NULL, '[]', 1704153600000, NULL, NULL);

INSERT INTO mv_partition VALUES ('by_name', 1704067200000, 'VALID', 6, '[[1,-3466371895601094541],"30e7c6186ac46fc8",[["zones",[1,1483482288296880282]]]]', '9cecb622574e43aa8cf4d45ec2b37b7d', 6, 2, 462, 15, 'OVERWRITE', 1706745600132, NULL, FALSE, 0, FALSE, '[["0.parquet",1407150527046725237,1704067200000,1704153599999]]');
INSERT INTO mv_partition VALUES ('by_name', 1704153600000, 'VALID', 8, '[[2,1528391489997425889],"30e7c6186ac46fc8",[["zones",[1,1483482288296880282]]]]', 'bc985bdf92f141c6a0e7ec93e2281cb8', 8, 2, 1346, 44, 'OVERWRITE', 1706745600259, NULL, FALSE, 0, FALSE, '[["1.parquet",-7985786890856701716,1704153600000,1704239999999],["late.parquet",6772270537948194764,1704171600000,1704171600000]]');
INSERT INTO mv_partition VALUES ('by_name', 1704240000000, 'VALID', 6, '[[1,6686448943529215278],"30e7c6186ac46fc8",[["zones",[1,1483482288296880282]]]]', '9cecb622574e43aa8cf4d45ec2b37b7d', 6, 2, 462, 15, 'OVERWRITE', 1706745600132, NULL, FALSE, 0, FALSE, '[["2.parquet",-3433627341783700683,1704240000000,1704326399999]]');
INSERT INTO mv_partition VALUES ('daily', 1704067200000, 'VALID', 4, '[[4,9122732731052079177],"38c08b6131a61ba5",[]]', '6a745c4b853f4b4b8095be56bc7433dd', 4, 1, 532, 8, 'APPEND', 1706745600963, NULL, FALSE, 0, FALSE, '[["2024-01-01T00:00",3,1704067200000,1704088799999],["2024-01-01T06:00",3,1704088800000,1704110399999],["2024-01-01T12:00",3,1704110400000,1704131999999],["2024-01-01T18:00",3,1704132000000,1704153599999]]');
INSERT INTO mv_partition VALUES ('daily', 1704153600000, 'VALID', 6, '[[4,2960421294085280267],"38c08b6131a61ba5",[]]', 'bd2cd39271044d7694f77afba3d82220', 6, 1, 1560, 30, 'OVERWRITE', 1706745600349, NULL, FALSE, 0, FALSE, '[["2024-01-02T00:00",5,1704153600000,1704175199999],["2024-01-02T06:00",3,1704175200000,1704196799999],["2024-01-02T12:00",3,1704196800000,1704218399999],["2024-01-02T18:00",3,1704218400000,1704239999999]]');
INSERT INTO mv_partition VALUES ('daily', 1704240000000, 'STALE', 7, '[[4,-5200449177131992577],"38c08b6131a61ba5",[]]', '6a745c4b853f4b4b8095be56bc7433dd', 4, 1, 532, 8, 'APPEND', 1706745600963, 'by hand', TRUE, 7, FALSE, '[["2024-01-03T00:00",3,1704240000000,1704261599999],["2024-01-03T06:00",3,1704261600000,1704283199999],["2024-01-03T12:00",3,1704283200000,1704304799999],["2024-01-03T18:00",3,1704304800000,1704326399999]]');
INSERT INTO mv_partition VALUES ('hourly', 1704067200000, 'VALID', 3, '[[1,-3466371895601094541],"ce681fc9fcf6280f",[]]', '8be04b653e4d4c33b80873a3fcedf90d', 3, 1, 215, 13, 'APPEND', 1706745600619, NULL, FALSE, 0, FALSE, '[["0.parquet",1407150527046725237,1704067200000,1704153599999]]');
INSERT INTO mv_partition VALUES ('hourly', 1704088800000, 'VALID', 3, '[[1,-3466371895601094541],"ce681fc9fcf6280f",[]]', '8be04b653e4d4c33b80873a3fcedf90d', 3, 1, 215, 13, 'APPEND', 1706745600619, NULL, FALSE, 0, FALSE, '[["0.parquet",1407150527046725237,1704067200000,1704153599999]]');
INSERT INTO mv_partition VALUES ('hourly', 1704110400000, 'VALID', 3, '[[1,-3466371895601094541],"ce681fc9fcf6280f",[]]', '8be04b653e4d4c33b80873a3fcedf90d', 3, 0, 0, 13, 'APPEND', 1706745600619, NULL, FALSE, 0, FALSE, '[["0.parquet",1407150527046725237,1704067200000,1704153599999]]');
INSERT INTO mv_partition VALUES ('hourly', 1704132000000, 'VALID', 3, '[[1,-3466371895601094541],"ce681fc9fcf6280f",[]]', '8be04b653e4d4c33b80873a3fcedf90d', 3, 1, 215, 13, 'APPEND', 1706745600619, NULL, FALSE, 0, FALSE, '[["0.parquet",1407150527046725237,1704067200000,1704153599999]]');
INSERT INTO mv_partition VALUES ('hourly', 1704153600000, 'VALID', 5, '[[2,1528391489997425889],"ce681fc9fcf6280f",[]]', '7e0300b6d2d14e12a90ea7c25f58cc2e', 5, 2, 1793, 37, 'OVERWRITE', 1706745600197, NULL, FALSE, 0, FALSE, '[["1.parquet",-7985786890856701716,1704153600000,1704239999999],["late.parquet",6772270537948194764,1704171600000,1704171600000]]');
INSERT INTO mv_partition VALUES ('hourly', 1704175200000, 'VALID', 3, '[[1,6190673730964306571],"ce681fc9fcf6280f",[]]', '8be04b653e4d4c33b80873a3fcedf90d', 3, 1, 215, 13, 'APPEND', 1706745600619, NULL, FALSE, 0, FALSE, '[["1.parquet",-7985786890856701716,1704153600000,1704239999999]]');
INSERT INTO mv_partition VALUES ('hourly', 1704196800000, 'VALID', 3, '[[1,6190673730964306571],"ce681fc9fcf6280f",[]]', '8be04b653e4d4c33b80873a3fcedf90d', 3, 0, 0, 13, 'APPEND', 1706745600619, NULL, FALSE, 0, FALSE, '[["1.parquet",-7985786890856701716,1704153600000,1704239999999]]');
INSERT INTO mv_partition VALUES ('hourly', 1704218400000, 'VALID', 3, '[[1,6190673730964306571],"ce681fc9fcf6280f",[]]', '8be04b653e4d4c33b80873a3fcedf90d', 3, 1, 215, 13, 'APPEND', 1706745600619, NULL, FALSE, 0, FALSE, '[["1.parquet",-7985786890856701716,1704153600000,1704239999999]]');
INSERT INTO mv_partition VALUES ('hourly', 1704240000000, 'VALID', 3, '[[1,6686448943529215278],"ce681fc9fcf6280f",[]]', '8be04b653e4d4c33b80873a3fcedf90d', 3, 1, 215, 13, 'APPEND', 1706745600619, NULL, FALSE, 0, FALSE, '[["2.parquet",-3433627341783700683,1704240000000,1704326399999]]');
INSERT INTO mv_partition VALUES ('hourly', 1704261600000, 'VALID', 3, '[[1,6686448943529215278],"ce681fc9fcf6280f",[]]', '8be04b653e4d4c33b80873a3fcedf90d', 3, 1, 215, 13, 'APPEND', 1706745600619, NULL, FALSE, 0, FALSE, '[["2.parquet",-3433627341783700683,1704240000000,1704326399999]]');
INSERT INTO mv_partition VALUES ('hourly', 1704283200000, 'VALID', 3, '[[1,6686448943529215278],"ce681fc9fcf6280f",[]]', '8be04b653e4d4c33b80873a3fcedf90d', 3, 0, 0, 13, 'APPEND', 1706745600619, NULL, FALSE, 0, FALSE, '[["2.parquet",-3433627341783700683,1704240000000,1704326399999]]');
INSERT INTO mv_partition VALUES ('hourly', 1704304800000, 'VALID', 3, '[[1,6686448943529215278],"ce681fc9fcf6280f",[]]', '8be04b653e4d4c33b80873a3fcedf90d', 3, 1, 215, 13, 'APPEND', 1706745600619, NULL, FALSE, 0, FALSE, '[["2.parquet",-3433627341783700683,1704240000000,1704326399999]]');
INSERT INTO mv_partition VALUES ('nested', 1704067200000, 'VALID', 3, '[[1,-8852860322043828267],"4db954eb331f7b63",[["schema of visits",[2,-3249175584326440272]]]]', 'eb312a42191c41eca9facc0086cad0ec', 3, 1, 1213, 45, 'APPEND', 1706745600790, NULL, FALSE, 0, FALSE, '[["part-00000-cbb0b67b-3246-415a-b854-8a2195c48d14-c000.snappy.parquet",4271998642743478213,1704078000000,1704153599999]]');

INSERT INTO mv_schema VALUES (3);


INSERT INTO mv_view VALUES ('by_name', 8, 1704326400000, '1d', 1704067200000, '30e7c6186ac46fc8', 1704326399999, 0);
INSERT INTO mv_view VALUES ('daily', 7, 1704326400000, '1d', 1704067200000, '38c08b6131a61ba5', 1704326399999, 0);
INSERT INTO mv_view VALUES ('hourly', 5, 1704326400000, '6h', 1704067200000, 'ce681fc9fcf6280f', 1704326399999, 0);
INSERT INTO mv_view VALUES ('nested', 3, 1704153600000, '1d', 1704067200000, '4db954eb331f7b63', 1704153599999, 0);
