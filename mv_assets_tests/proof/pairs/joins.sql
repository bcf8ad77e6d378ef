-- view: days by shop and product, nothing joined
SELECT date_trunc('day', at) AS t, shop, product, channel, count(*) AS n, sum(amount) AS amount, count(amount) AS amounts, max(quantity) AS most FROM events GROUP BY ALL

-- served
SELECT s.country, count(*) AS n FROM events e JOIN shops s ON e.shop = s.shop GROUP BY s.country

-- served
SELECT country, sum(amount) AS s FROM events JOIN shops USING (shop) GROUP BY country

-- served
SELECT country, sum(amount) AS s FROM events LEFT JOIN shops USING (shop) GROUP BY country

-- served
SELECT s.country, p.category, sum(e.amount) AS s FROM events e JOIN shops s ON e.shop = s.shop JOIN products p ON e.product = p.product GROUP BY 1, 2

-- served
SELECT p.brand, count(*) AS n FROM events e JOIN products p ON p.product = e.product GROUP BY p.brand

-- served
SELECT p.brand, avg(e.amount) AS a FROM events e LEFT JOIN products p ON p.product = e.product WHERE e.channel = 'web' GROUP BY p.brand

-- served
SELECT s.city, to_date(e.at) AS d, count(*) AS n FROM events e, shops s WHERE e.shop = s.shop GROUP BY ALL

-- served
SELECT s.city, max(e.quantity) AS m FROM events e JOIN shops s ON e.shop = s.shop AND s.size > 10 GROUP BY s.city

-- served
SELECT count(*) AS n FROM events e JOIN shops s ON e.shop = s.shop WHERE s.country = 'AT'

-- served
SELECT count(DISTINCT s.country) AS c FROM events e JOIN shops s ON e.shop = s.shop

-- served
SELECT max(s.size) AS m FROM events e JOIN shops s ON e.shop = s.shop WHERE e.channel = 'app'

-- served
SELECT e.shop, s.city, sum(e.amount) AS a FROM events e JOIN shops s ON s.shop = e.shop WHERE e.at >= '1970-01-02' GROUP BY 1, 2

-- served
SELECT e.channel, count(*) AS n FROM events e LEFT SEMI JOIN shops s ON e.shop = s.shop GROUP BY e.channel

-- served
SELECT e.channel, count(*) AS n FROM events e LEFT ANTI JOIN shops s ON e.shop = s.shop GROUP BY e.channel

-- base: a subquery in a condition is answered by itself only
SELECT count(*) AS n FROM events WHERE shop IN (SELECT shop FROM shops WHERE country = 'AT')

-- served
SELECT sum(s.size) AS x FROM events e JOIN shops s ON e.shop = s.shop

-- base: joined by what is no key
SELECT s.city, count(*) AS n FROM events e JOIN shops s ON e.quantity = s.size GROUP BY s.city

-- base: rows of the other side are kept
SELECT s.city, count(*) AS n FROM events e RIGHT JOIN shops s ON e.shop = s.shop GROUP BY s.city

-- base: rows of the other side are kept
SELECT s.city, count(*) AS n FROM events e FULL JOIN shops s ON e.shop = s.shop GROUP BY s.city

-- base: a product of both sides
SELECT sum(e.amount * s.size) AS x FROM events e JOIN shops s ON e.shop = s.shop

-- view: days by country, shops joined on the left
SELECT date_trunc('day', e.at) AS t, s.country, e.channel, count(*) AS n, sum(e.amount) AS amount, count(e.amount) AS amounts FROM events e LEFT JOIN shops s ON e.shop = s.shop GROUP BY ALL

-- served
SELECT s.country, count(*) AS n FROM events e LEFT JOIN shops s ON e.shop = s.shop GROUP BY s.country

-- served
SELECT country, count(*) AS n FROM events LEFT JOIN shops USING (shop) GROUP BY country

-- served
SELECT x.country, sum(y.amount) AS s FROM events y LEFT JOIN shops x ON x.shop = y.shop GROUP BY x.country

-- served
SELECT s.country, avg(e.amount) AS a FROM events e LEFT OUTER JOIN shops s ON s.shop = e.shop WHERE e.channel = 'web' GROUP BY s.country

-- served
SELECT count(*) AS n FROM events e LEFT JOIN shops s ON e.shop = s.shop WHERE s.country = 'CH'

-- served
SELECT channel, count(*) AS n FROM events GROUP BY channel

-- served
SELECT to_date(at) AS d, sum(amount) AS s FROM events GROUP BY 1

-- base: shops may be lost
SELECT s.country, count(*) AS n FROM events e JOIN shops s ON e.shop = s.shop GROUP BY s.country

-- base: city is no key
SELECT s.city, count(*) AS n FROM events e LEFT JOIN shops s ON e.shop = s.shop GROUP BY s.city

-- base: other rows are joined
SELECT s.country, count(*) AS n FROM events e LEFT JOIN shops s ON e.shop = s.shop AND s.size > 10 GROUP BY s.country

-- base: by another column
SELECT s.country, count(*) AS n FROM events e LEFT JOIN shops s ON e.product = s.shop GROUP BY s.country

-- view: days by city, shops joined
SELECT date_trunc('day', e.at) AS t, s.city, s.country, count(*) AS n, sum(e.amount) AS amount FROM events e JOIN shops s ON e.shop = s.shop GROUP BY ALL

-- served
SELECT s.city, count(*) AS n FROM events e JOIN shops s ON e.shop = s.shop GROUP BY s.city

-- served
SELECT s.country, sum(e.amount) AS a FROM events e INNER JOIN shops s ON s.shop = e.shop GROUP BY s.country

-- served
SELECT s.country, sum(e.amount) AS a FROM events e JOIN shops s USING (shop) WHERE s.city = 'Graz' GROUP BY s.country

-- served
SELECT count(*) AS n FROM events e, shops s WHERE e.shop = s.shop

-- served
SELECT s.country, count(*) AS n FROM events e JOIN shops s ON e.shop = s.shop GROUP BY CUBE (s.country)

-- base: rows without a shop are not in it
SELECT s.city, count(*) AS n FROM events e LEFT JOIN shops s ON e.shop = s.shop GROUP BY s.city

-- base: rows without a shop are not in it
SELECT count(*) AS n FROM events

-- base: shops of one country only, which the view does not have alone
SELECT s.size, count(*) AS n FROM events e JOIN shops s ON e.shop = s.shop GROUP BY s.size

-- view: single rows with their shops and products
SELECT e.at AS t, e.shop, e.channel, e.amount, e.quantity, s.city, s.country, p.brand FROM events e LEFT JOIN shops s ON e.shop = s.shop LEFT JOIN products p ON e.product = p.product

-- base: single rows that a join has doubled
SELECT s.city, p.brand, e.amount FROM events e LEFT JOIN shops s ON e.shop = s.shop LEFT JOIN products p ON e.product = p.product WHERE e.amount > 5

-- served
SELECT s.city, p.brand, sum(e.amount) AS a FROM events e LEFT JOIN products p ON e.product = p.product LEFT JOIN shops s ON e.shop = s.shop GROUP BY 1, 2

-- served
SELECT p.brand, count(*) AS n FROM events e LEFT JOIN shops s USING (shop) LEFT JOIN products p USING (product) WHERE s.country = 'AT' GROUP BY p.brand

-- base: products double rows
SELECT sum(amount) AS a FROM events

-- base: products double rows
SELECT s.city, sum(e.amount) AS a FROM events e LEFT JOIN shops s ON e.shop = s.shop GROUP BY s.city

-- view: hours by shop and place, shops joined on the left, so that rows without a match can be told
SELECT date_trunc('hour', e.at) AS t, e.shop, e.channel, s.shop AS place, s.city, s.country, count(*) AS n, sum(e.quantity) AS q FROM events e LEFT JOIN shops s ON e.shop = s.shop GROUP BY ALL

-- served
SELECT count(*) AS n FROM events e JOIN shops s ON e.shop = s.shop WHERE s.shop IS NULL OR s.city = 'Bern'

-- served
SELECT count(*) AS n FROM events e JOIN shops s ON e.shop = s.shop WHERE s.city IS NULL OR s.shop IN (1, 2)

-- served
SELECT sum(e.quantity) AS q FROM events e JOIN shops s USING (shop) WHERE coalesce(s.shop, 0) <> 2

-- served
SELECT s.city, count(*) AS n FROM events e, shops s WHERE e.shop = s.shop AND (s.shop > 1 OR s.country IS NULL) GROUP BY 1

-- served
SELECT s.country, count(*) AS n FROM shops s JOIN events e USING (shop) GROUP BY s.country

-- served
SELECT count(*) AS n FROM events e JOIN shops s ON e.shop = s.shop WHERE e.channel = s.city

-- base: rows of other cities are not told from those without any
SELECT count(*) AS n FROM events e LEFT JOIN shops s ON e.shop = s.shop AND e.channel = s.city

-- view: days of products in shops of the brand's name, all joined
SELECT date_trunc('day', e.at) AS t, e.shop, s.city, p.brand, count(*) AS n FROM events e JOIN shops s ON e.shop = s.shop JOIN products p ON e.product = p.product AND s.city <> p.brand GROUP BY ALL

-- served
SELECT p.brand, count(*) AS n FROM products p, shops s, events e WHERE p.product = e.product AND e.shop = s.shop AND s.city <> p.brand GROUP BY p.brand

-- served
SELECT s.shop, count(*) AS n FROM events e JOIN products p ON e.product = p.product JOIN shops s ON s.shop = e.shop AND s.city <> p.brand GROUP BY s.shop

-- base: other products, too
SELECT count(*) AS n FROM events e JOIN products p ON e.product = p.product JOIN shops s ON e.shop = s.shop
