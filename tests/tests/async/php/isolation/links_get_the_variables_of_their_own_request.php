<?php
output_add_rewrite_var('v', $m);
meet('a');
echo '<form action="x">';
meet('b');
echo '</form>';
meet('c');
