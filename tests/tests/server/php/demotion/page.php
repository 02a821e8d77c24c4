<?php
echo '<meta name="nonce" content="', defined('AT_BOOT') ? AT_BOOT : bin2hex(random_bytes(16)), '">';
