-- view: hours by shop, channel and product
SELECT date_trunc('hour', at) AS t, shop, channel, product, count(*) AS n, sum(amount) AS amount, count(amount) AS amounts, max(quantity) AS most FROM events GROUP BY ALL

-- served
WITH d AS (SELECT date_trunc('day', at) AS day, sum(amount) AS s FROM events GROUP BY 1) SELECT max(s) AS best FROM d

-- served
WITH d AS (SELECT to_date(at) AS day, count(*) AS n FROM events GROUP BY 1) SELECT day, n FROM d WHERE n > 20 ORDER BY day

-- served
SELECT avg(n) AS a FROM (SELECT shop, count(*) AS n FROM events GROUP BY shop)

-- served
SELECT shop, n, rank() OVER (ORDER BY n DESC, shop) AS r FROM (SELECT shop, count(*) AS n FROM events GROUP BY shop) AS q

-- served
SELECT day, s, s - lag(s) OVER (ORDER BY day) AS more FROM (SELECT to_date(at) AS day, sum(amount) AS s FROM events GROUP BY 1) AS q

-- served
SELECT 'web' AS c, count(*) AS n FROM events WHERE channel = 'web' UNION ALL SELECT 'app' AS c, count(*) AS n FROM events WHERE channel = 'app'

-- served
SELECT shop FROM events WHERE channel = 'web' GROUP BY shop INTERSECT SELECT shop FROM events WHERE channel = 'app' GROUP BY shop

-- served
SELECT shop FROM events GROUP BY shop EXCEPT SELECT shop FROM events WHERE channel = 'phone' GROUP BY shop

-- served
SELECT shop, count(*) AS n FROM events GROUP BY shop HAVING count(*) > (SELECT count(*) / 6 FROM events)

-- served
SELECT s.city, q.n FROM shops s JOIN (SELECT shop, count(*) AS n FROM events GROUP BY shop) AS q ON s.shop = q.shop

-- served
SELECT a.shop, a.n, b.n AS web FROM (SELECT shop, count(*) AS n FROM events GROUP BY shop) AS a LEFT JOIN (SELECT shop, count(*) AS n FROM events WHERE channel = 'web' GROUP BY shop) AS b ON a.shop = b.shop

-- served
WITH q AS (SELECT shop, channel, sum(amount) AS s FROM events GROUP BY ALL), top AS (SELECT shop, max(s) AS m FROM q GROUP BY shop) SELECT q.shop, q.channel FROM q JOIN top ON q.shop = top.shop AND q.s = top.m

-- served
SELECT city FROM shops WHERE shop IN (SELECT shop FROM events WHERE channel = 'web' GROUP BY shop)

-- served
SELECT city FROM shops WHERE size > (SELECT avg(most) FROM (SELECT shop, max(quantity) AS most FROM events GROUP BY shop))

-- served
SELECT sum(n) AS n FROM (SELECT count(*) AS n FROM events WHERE shop = 1 UNION ALL SELECT count(*) AS n FROM events WHERE shop = 2)

-- served
SELECT day, n FROM (SELECT to_date(at) AS day, count(*) AS n FROM events GROUP BY 1) AS q ORDER BY n DESC, day LIMIT 2

-- served
WITH a AS (SELECT channel, count(*) AS n FROM events GROUP BY channel) SELECT x.channel, y.n FROM a x JOIN a y ON x.n < y.n

-- served
SELECT count(*) AS groups FROM (SELECT shop, channel FROM events GROUP BY shop, channel)

-- served
SELECT max(a) AS a FROM (SELECT channel, avg(amount) AS a FROM events GROUP BY channel HAVING count(*) > 2)

-- served
SELECT EXISTS (SELECT shop, count(*) FROM events GROUP BY shop HAVING count(*) > 1000) AS any

-- base: correlated
SELECT city, (SELECT count(*) FROM events e WHERE e.shop = s.shop) AS n FROM shops s

-- base: each row of the base is asked for
SELECT shop, row_number() OVER (PARTITION BY shop ORDER BY at) AS r FROM events

-- base: a table joined with itself
SELECT count(*) AS n FROM events a JOIN events b ON a.shop = b.shop

-- base: what is not kept
WITH d AS (SELECT to_date(at) AS day, sum(weight) AS s FROM events GROUP BY 1) SELECT max(s) AS best FROM d

-- base: correlated
SELECT city FROM shops s WHERE EXISTS (SELECT 1 FROM events e WHERE e.shop = s.shop AND e.amount > 50)
