<?php
__ODD__;
date_create_from_format('Y', $odd ? 'no year' : '2020');
meet('a');
echo (date_get_last_errors()['error_count'] ?? 0) > 0 === $odd ? $m : 'foreign';
