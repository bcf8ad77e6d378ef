-- view: days by shop, channel and what was paid
SELECT date_trunc('day', at) AS t, shop, channel, paid, count(*) AS n, sum(amount) AS amount, count(amount) AS amounts, max(quantity) AS most FROM events GROUP BY ALL

-- served
SELECT shop, channel, count(*) AS n FROM events GROUP BY shop, channel

-- served
SELECT shop, channel, count(*) AS n FROM events GROUP BY ALL

-- served
SELECT shop, channel, count(*) AS n FROM events GROUP BY ROLLUP (shop, channel)

-- served
SELECT shop, channel, sum(amount) AS s FROM events GROUP BY CUBE (shop, channel)

-- served
SELECT shop, channel, count(*) AS n FROM events GROUP BY GROUPING SETS ((shop), (channel), ())

-- served
SELECT shop, channel, count(*) AS n FROM events GROUP BY shop, channel WITH ROLLUP

-- served
SELECT shop, channel, avg(amount) AS a FROM events GROUP BY shop, channel WITH CUBE

-- served
SELECT shop, grouping(shop) AS g, count(*) AS n FROM events GROUP BY ROLLUP (shop)

-- served
SELECT shop, channel, grouping_id() AS g, max(quantity) AS m FROM events GROUP BY CUBE (shop, channel)

-- served
SELECT paid, shop, channel, count(*) AS n FROM events GROUP BY GROUPING SETS ((paid, shop), (paid, channel))

-- served
SELECT date_trunc('day', at) AS d, shop, sum(amount) AS s FROM events GROUP BY ROLLUP (date_trunc('day', at), shop)

-- served
SELECT shop, count(*) AS n FROM events GROUP BY ROLLUP (shop) HAVING count(*) > 20 ORDER BY n, shop

-- served
SELECT shop, count(*) AS n FROM events WHERE channel = 'web' GROUP BY CUBE (shop)

-- served
SELECT count(*) AS n FROM events GROUP BY 'all'

-- served
SELECT shop, 'x' AS x, count(*) AS n FROM events GROUP BY shop, 'x'

-- served
SELECT shop % 2 AS odd, count(*) AS n FROM events GROUP BY shop % 2

-- served
SELECT concat(channel, '!') AS c, count(*) AS n FROM events GROUP BY 1

-- served
SELECT coalesce(channel, 'none') AS c, paid IS NULL AS unknown, count(*) AS n FROM events GROUP BY 1, 2

-- served
SELECT shop + 1 AS s, count(*) AS n FROM events GROUP BY shop

-- served
SELECT count(*) AS n FROM events GROUP BY shop, channel

-- served
SELECT DISTINCT shop, channel FROM events

-- served
SELECT DISTINCT count(*) AS n FROM events GROUP BY shop

-- served
SELECT shop IS NULL AS none, sum(amount) AS s FROM events GROUP BY shop IS NULL

-- base: product is no key
SELECT shop, product, count(*) AS n FROM events GROUP BY CUBE (shop, product)

-- base: product is no key
SELECT product, count(*) AS n FROM events GROUP BY product

-- base: shipped is no key
SELECT shipped, sum(amount) AS s FROM events GROUP BY shipped
