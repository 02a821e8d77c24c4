USE lab;
CREATE TABLE heavy_product (id INT PRIMARY KEY, code VARCHAR(64) NOT NULL UNIQUE, enabled TINYINT(1) NOT NULL);
CREATE TABLE heavy_product_translation (id INT PRIMARY KEY, product_id INT NOT NULL, locale VARCHAR(8) NOT NULL, name VARCHAR(128) NOT NULL,
  slug VARCHAR(128) NOT NULL, description VARCHAR(500) NOT NULL, KEY (product_id));
CREATE TABLE heavy_tax_category (id INT PRIMARY KEY, code VARCHAR(32) NOT NULL);
CREATE TABLE heavy_tax_rate (id INT PRIMARY KEY, category_id INT NOT NULL, zone VARCHAR(8) NOT NULL, amount DECIMAL(6, 4) NOT NULL,
  included TINYINT(1) NOT NULL, KEY (category_id));
CREATE TABLE heavy_variant (id INT PRIMARY KEY, product_id INT NOT NULL, tax_category_id INT NOT NULL, code VARCHAR(64) NOT NULL,
  position INT NOT NULL, on_hand INT NOT NULL, KEY (product_id, position));
CREATE TABLE heavy_variant_translation (id INT PRIMARY KEY, variant_id INT NOT NULL, locale VARCHAR(8) NOT NULL, name VARCHAR(128) NOT NULL,
  KEY (variant_id));
CREATE TABLE heavy_channel_price (id INT PRIMARY KEY, variant_id INT NOT NULL, channel VARCHAR(32) NOT NULL, price INT NOT NULL,
  original_price INT NOT NULL, KEY (variant_id));
INSERT INTO heavy_product VALUES (1, 'lab-mug', 1);
INSERT INTO heavy_product_translation VALUES
  (1, 1, 'en', 'Lab mug', 'lab-mug', 'A mug that is asked for often.'),
  (2, 1, 'de', 'Laborbecher', 'laborbecher', 'Ein Becher, nach dem oft gefragt wird.');
INSERT INTO heavy_tax_category VALUES (1, 'standard'), (2, 'reduced');
INSERT INTO heavy_tax_rate VALUES (1, 1, 'EU', 0.2000, 1), (2, 1, 'US', 0.0700, 0), (3, 2, 'EU', 0.0700, 1), (4, 2, 'US', 0.0300, 0);
INSERT INTO heavy_variant
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
  SELECT i, 1, 1 + i % 2, CONCAT('lab-mug-', i), i, i % 7 FROM n;
INSERT INTO heavy_variant_translation
  SELECT 2 * id - 1, id, 'en', CONCAT('Mug number ', id) FROM heavy_variant UNION ALL
  SELECT 2 * id, id, 'de', CONCAT('Becher Nummer ', id) FROM heavy_variant;
INSERT INTO heavy_channel_price
  SELECT 2 * id - 1, id, 'web', 900 + 10 * id, 1000 + 10 * id FROM heavy_variant UNION ALL
  SELECT 2 * id, id, 'mobile', 890 + 10 * id, 1000 + 10 * id FROM heavy_variant;
