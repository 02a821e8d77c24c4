<?php
echo value("SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Questions'");
